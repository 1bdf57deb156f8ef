// The admin API at several workers on an embedded store: what is changed holds at all of them and outlives them, and
// metrics are those of all.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { gatehouse } from '../e2e/kit/process.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { ownProcess, workers } from './kit.ts'

const platform = { authorization: `Bearer ${adminKeys.platform}`, 'content-type': 'application/json' }
/** Connections go to the workers in turn. */
const turns = [1, 2, 3, 4]

t.test('a tenant and a key that were made hold at both workers, and after a restart', async (t) => {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const folder = t.testdir()
  const file = join(folder, 'gatehouse.json')
  const config = { ...(configOf(ownProcess) as object), store: 'file:./gatehouse.db', admin: adminSection }
  await writeFile(file, JSON.stringify(config))
  const start = async () => {
    const running = gatehouse(t, ['serve', '--config', file, '--port', '0', '--workers', '2'], { cwd: folder })
    const url = await running.ready
    const { adminUrl } = await running.logged('the admin port', (line) => 'adminUrl' in line)
    return { ...running, url, admin: `${String(adminUrl)}/v1/tenants/fresh` }
  }
  const first = await start()
  const put = (path: string, body: unknown) =>
    send(`${first.admin}${path}`, { method: 'PUT', headers: platform, body: JSON.stringify(body) })
  t.equal((await put('', { auth: {}, upstreams: {} })).status, 201)
  t.equal((await put('/upstreams/up', { url: up.url })).status, 201)
  const made = await send(`${first.admin}/keys`, { headers: platform, body: JSON.stringify({ name: 'ci' }) })
  t.equal(made.status, 201)
  const { key: ci } = made.json as { key: string }

  const list = (url: string, token: string) => modernRequest(`${url}/t/fresh/mcp`, 'tools/list', {}, { token })
  // Connections are given to the workers in turn.
  await until('it holds at both', async () => {
    const statuses = []
    for (const _ of turns) statuses.push((await list(first.url, ci)).status)
    return statuses.every((status) => status === 200)
  })
  for (const _ of turns) t.equal((await list(first.url, key)).status, 401, 'the key of another tenant is refused')
  t.same(await first.stop(), { code: 0, signal: null })
  const second = await start()
  for (const _ of turns) t.equal((await list(second.url, ci)).status, 200)
})

t.test('/metrics of any worker has those of all, each family once', async (t) => {
  const gateway = await workers(t, { ...ownProcess, top: { admin: adminSection } })
  const client = await legacyClient(gateway.mcp, key)
  for (const _ of turns) await client.request('tools/list')
  const { adminUrl } = await gateway.logged('the admin port', (line) => 'adminUrl' in line)
  for (const accept of ['text/plain', 'application/openmetrics-text'])
    for (const _ of turns) {
      // One that does not answer within two seconds is left out.
      const { text } = await until('both workers tell theirs', async () => {
        const answer = await send(`${String(adminUrl)}/metrics`, { method: 'GET', headers: { ...platform, accept } })
        const hasBoth = ['1', '2'].every((number) => answer.text.includes(`gatehouse_connections{worker="${number}"`))
        return answer.status === 200 && hasBoth ? answer : undefined
      })
      const samples = text.split('\n').filter((line) => line.startsWith('gatehouse_connections{'))
      t.same(
        samples.map((line) => /worker="(\d)"/.exec(line)?.[1]),
        ['1', '2']
      )
      t.equal(text.split('\n').filter((line) => line === '# TYPE gatehouse_connections gauge').length, 1)
      const values = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      t.ok(values.every((line) => /^\w+\{worker="[12]"[,}]/.test(line)))
      t.equal(text.endsWith('# EOF\n'), accept.includes('openmetrics'))
    }
})
