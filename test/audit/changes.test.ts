// What administrators change is in the audit log of the tenant: who, in which role, from where, and what.

import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'

t.test('a change by the admin API is one record of its tenant; a refused one is none', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  await legacyClient(made.url(), key)
  const { items } = (await made.call('GET', '/v1/tenants/acme/sessions')).json as { items: Array<{ id: string }> }
  const target = items[0]?.id ?? ''
  const end = (key: string) => made.call('DELETE', `/v1/tenants/acme/sessions/${target}`, { key })
  t.equal((await end(adminKeys.viewer)).status, 403)
  t.equal((await end(adminKeys.acme)).status, 204)
  await made.close()
  const records = (await readFile(file, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { kind: string; chain: string })
  const changes = records.filter(({ kind }) => kind === 'change')
  t.match(changes, [
    {
      by: { kind: 'admin', name: 'acme', role: 'tenant-admin' },
      from: '127.0.0.1',
      action: 'session.end',
      target,
      before: /^[0-9a-f]{64}$/
    }
  ])
  t.equal(changes.length, 1)
  t.match(changes[0]?.chain, /^acme\//)
})
