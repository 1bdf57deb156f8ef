// What administrators change is in the audit log of the tenant: who, in which role, from where, and what.

import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { parse, recordsIn, report, type AuditRecord } from './kit.ts'

async function changesIn(file: string): Promise<AuditRecord[]> {
  return (await recordsIn(file)).filter(({ kind }) => kind === 'change')
}

t.test('a change by the admin API is one record of its tenant; a refused one is none', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  await legacyClient(made.url(), key)
  const { items } = (await made.call('GET', '/v1/tenants/acme/sessions')).json as { items: Array<{ id: string }> }
  const target = items[0]?.id ?? ''
  const end = (key: string) => made.call('DELETE', `/v1/tenants/acme/sessions/${target}`, { key })
  t.equal((await end(adminKeys.viewer)).status, 403)
  t.equal((await end(adminKeys.acme)).status, 204)
  const changes = await changesIn(file)
  t.equal(changes.length, 1, 'it is written before the answer')
  await made.close()
  t.match(changes, [
    {
      by: { kind: 'admin', name: 'acme', role: 'tenant-admin' },
      from: '127.0.0.1',
      action: 'session.end',
      target,
      before: /^[0-9a-f]{64}$/
    }
  ])
  t.equal((await changesIn(file)).length, 1)
  t.match(changes[0]?.chain, /^acme\//)
})

t.test('who tries what its key may not do is in the log, whichever check refuses it; a stranger is not', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  const acme = '/v1/tenants/acme'
  const tried = [
    [adminKeys.viewer, 'PUT', `${acme}/kills/tenant?x=1`, 403],
    [adminKeys.auditor, 'DELETE', `${acme}/upstreams/up`, 403],
    [adminKeys.acme, 'POST', '/v1/rollback', 403],
    [adminKeys.globex, 'DELETE', `${acme}/kills/tenant`, 404],
    [adminKeys.globex, 'PUT', `/v1/tenants/${'x'.repeat(400)}/kills/tenant`, 404],
    // What changes nothing, and who is nobody:
    [adminKeys.viewer, 'POST', '/v1/plan', 403],
    [adminKeys.globex, 'GET', acme, 404],
    [adminKeys.platform, 'DELETE', '/v1/tenants/nobody', 404],
    [`${adminKeys.viewer.slice(0, -3)}xyz`, 'PUT', `${acme}/kills/tenant`, 401]
  ] as const
  for (const [key, method, path, status] of tried) {
    const body = method === 'POST' ? { body: {} } : {}
    t.equal((await made.call(method, path, { key, ...body })).status, status, `${method} ${path.slice(0, 60)}`)
  }
  t.equal((await made.call('PUT', `${acme}/kills/tools/up/x`, { key: adminKeys.globex })).status, 404)
  await made.call('PUT', `${acme}/kills/tenant`)
  t.equal((await made.call('DELETE', `${acme}/kills/tenant`, { key: adminKeys.acme })).status, 403)
  await made.close()
  const refused = parse(await readFile(file, 'utf8')).filter(({ kind }) => kind === 'refused')
  const by = (name: string) => refused.filter((each) => (each['by'] as { name: string }).name === name)
  t.equal(refused.length, 7)
  t.match(by('viewer'), [
    {
      chain: /^acme\//,
      by: { kind: 'admin', name: 'viewer', role: 'viewer' },
      from: '127.0.0.1',
      action: 'PUT /v1/tenants/{tenant}/kills/tenant',
      target: '/v1/tenants/acme/kills/tenant',
      decision: 'denied',
      outcome: 'forbidden'
    }
  ])
  t.match(by('auditor'), [{ chain: /^acme\//, action: 'DELETE /v1/tenants/{tenant}/upstreams/{upstream}' }])
  t.match(by('acme'), [
    { chain: /^\(gateway\)\//, action: 'POST /v1/rollback', outcome: 'forbidden' },
    { chain: /^acme\//, action: 'kill.delete', outcome: 'forbidden' }
  ])
  t.match(
    by('globex'),
    Array.from({ length: 3 }, () => ({ chain: /^\(gateway\)\//, outcome: 'not_found' })),
    'the log of another tenant says nothing of who is not its own'
  )
  for (const { target } of refused) t.ok(String(target).length <= 256)
})

t.test(
  'the log of a tenant that is made by the admin API begins with its making, and ends after its removal',
  async (t) => {
    const file = join(t.testdir(), 'audit.jsonl')
    const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
    const path = '/v1/tenants/initech'
    const body = { auth: { keys: [{ name: 'ian', key: 'gh_key_of_ian_0123456789' }] }, upstreams: {} }
    const put = await made.call('PUT', path, { body })
    t.equal(put.status, 201)
    await legacyClient(made.url('default', 'initech'), 'gh_key_of_ian_0123456789')
    const headers = { 'If-Match': String(put.headers['etag']) }
    t.equal((await made.call('DELETE', path, { headers })).status, 204)
    await made.close()
    const by = { kind: 'admin', name: 'platform', role: 'platform-admin' }
    t.match(await changesIn(file), [
      { by, action: 'tenant.put', target: 'initech', before: undefined, after: /^[0-9a-f]{64}$/ },
      { by, action: 'tenant.delete', target: 'initech', before: /^[0-9a-f]{64}$/, after: undefined }
    ])
    const text = await readFile(file, 'utf8')
    t.same(
      parse(text).map(({ kind }) => kind),
      ['begin', 'change', 'session', 'change', 'end']
    )
    t.match(await report(text, Date.now()), { chains: 1, problems: [], notes: [] })
  }
)
