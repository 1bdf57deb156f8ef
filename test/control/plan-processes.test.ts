// A plan says of which servers processes end, and it is so when the change is made: they end, others start, and those of
// servers that it does not name go on.

import { join } from 'node:path'
import t from 'tap'
import { adminGateway, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'

const apiKey = 'gh_key_of_initech_0123456789'
const server = join(import.meta.dirname, '../kit/stdio-server.ts')

t.test('processes end of the servers that the plan names, and of no other', async (t) => {
  const command = process.execPath
  const made = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, allowedCommands: [command] } } })
  const stays = { command, args: [server] }
  const documentWith = (own: object, other: object = {}) => ({
    auth: { keys: [{ name: 'ci', key: apiKey }] },
    upstreams: { own: { ...stays, ...own }, other: { ...stays, ...other } }
  })
  const path = '/v1/tenants/initech'
  t.equal((await made.call('PUT', path, { body: documentWith({}) })).status, 201)
  const client = await legacyClient(made.url('default', 'initech'), apiKey)
  const pidOf = async (upstream: string): Promise<string | undefined> => {
    const { json } = await client.request('tools/call', { name: `${upstream}__pid`, arguments: {} })
    return (json.result?.content as Array<{ text: string }> | undefined)?.[0]?.text
  }
  const pids = async () => [await pidOf('own'), await pidOf('other')] as const
  const before = await pids()
  t.match(before, [/^\d+$/, /^\d+$/])
  const plan = async (document: object) => {
    const { json, status } = await made.call('POST', '/v1/plan', { body: { tenants: { initech: document } } })
    t.equal(status, 200)
    t.notMatch(JSON.stringify(json), '"rulesChange":true', 'there are no rules')
    return (json as { tenants: ReadonlyArray<{ upstreams: unknown }> }).tenants[0]?.upstreams
  }
  const put = async (body: object) => {
    const answer = await made.call('PUT', path, { body, headers: { 'If-Match': '*' } })
    t.equal(answer.status, 200)
  }

  const tagged = documentWith({ tags: { readOnly: ['pid'] } }, { description: 'Another one.' })
  t.same(await plan(tagged), [], 'what is said of a server starts none anew')
  await put(tagged)
  t.same(await pids(), before)

  const changed = documentWith({ env: { CHANGED: '1' } })
  t.same(await plan(changed), [{ upstream: 'own', change: 'changed', type: 'stdio' }])
  t.same(await pids(), before, 'a plan ends nothing')
  await put(changed)
  const after = await until('another one runs', async () => {
    const [own, other] = await pids()
    return own !== undefined && own !== before[0] ? [own, other] : undefined
  })
  t.equal(after[1], before[1], 'the other one goes on')
  const isGone = (pid: string | undefined): boolean => {
    try {
      process.kill(Number(pid), 0)
      return false
    } catch {
      return true
    }
  }
  await until('the one before has ended', () => isGone(before[0]))

  const removed = { ...changed, upstreams: { own: changed.upstreams.own } }
  t.same(await plan(removed), [{ upstream: 'other', change: 'removed', type: 'stdio' }])
  t.notOk(isGone(before[1]))
  await put(removed)
  await until('it has ended', () => isGone(before[1]))
})
