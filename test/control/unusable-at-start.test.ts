// A process that starts while the document of a tenant cannot be used does not take that tenant for one that was
// removed: it says that it does not serve all, and answers 503 instead of 404; the sessions of the tenant, and with them
// the accounts of its people, are there when the document can be used again.

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { type Served, serve } from '../kit/process.ts'
import { startUpstream } from '../kit/upstream.ts'

const key = 'gh_key_of_filed_0123456789'

const adminOf = async (node: Served): Promise<string> =>
  String((await node.logged('the admin API', (line) => 'adminUrl' in line))['adminUrl'])

async function started(t: Test, folder: string): Promise<Served> {
  return await serve(t, { store: `file:${join(folder, 'gatehouse.db')}`, admin: adminSection, tenants: {} })
}

async function pinged(url: string, sessionId: string) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      'mcp-session-id': sessionId,
      'mcp-protocol-version': '2025-11-25'
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

t.test('sessions of a tenant outlive a process that cannot use its document', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const folder = t.testdir()
  const [file, away] = [join(folder, 'key'), join(folder, 'away')]
  writeFileSync(file, key)
  const first = await started(t, folder)
  const body = {
    auth: { keys: [{ name: 'filed', key: `\${file:${file}}` }] },
    upstreams: { up: { url: upstream.url } }
  }
  t.equal((await adminCall(await adminOf(first), 'PUT', '/v1/tenants/filed', { body })).status, 201)
  const client = await legacyClient(`${first.url}/t/filed/mcp`, key)
  const ping = ({ url }: Served, tenant = 'filed') => pinged(`${url}/t/${tenant}/mcp`, client.sessionId)
  const ready = async ({ url }: Served) => await (await fetch(`${url}/health/ready`)).json()
  t.same(await ready(first), { status: 'ready' })
  t.equal((await ping(first, 'nobody')).status, 404, 'all tenants are there: one that is not there is unknown')
  await first.stop()

  renameSync(file, away)
  const second = await started(t, folder)
  await second.logged('that it cannot be used', ({ msg }) => String(msg).includes('cannot be used at this process'))
  t.match(await ready(second), { status: 'ready', tenants: /are not served here/ }, 'others are served')
  const problems = await adminCall(await adminOf(second), 'GET', '/v1/problems', { key: adminKeys.platform })
  t.match(problems.json, { items: [{ kind: 'configuration', tenant: 'filed', sentence: /does not serve/ }] })
  for (const tenant of ['filed', 'nobody']) {
    const { status, headers, text } = await ping(second, tenant)
    t.match({ status, retry: headers.get('retry-after') }, { status: 503, retry: '1' }, text)
  }
  await second.stop()

  renameSync(away, file)
  const third = await started(t, folder)
  const again = await ping(third)
  t.equal(again.status, 200, again.text)
  t.same(await ready(third), { status: 'ready' })
})
