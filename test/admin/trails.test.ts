// The trails of the audit log that no tenant has now; and what is cut off at the end of a log is missed, because the
// gateway keeps how far its runs were.

import { hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readAudit } from '../../src/audit/segments.ts'
import { auditIndexKey, auditSegmentKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { cli } from '../cli/kit.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { configOf, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'

interface Records {
  readonly items: ReadonlyArray<Record<string, unknown>>
}

const globexAuditor = `gha_${hash('sha256', 'auditor of globex', 'base64url')}`
const admin = {
  ...adminSection,
  keys: [
    ...adminSection.keys,
    { name: 'gina', role: 'auditor', tenants: ['globex'], sha256: hash('sha256', globexAuditor) }
  ]
}

t.test('the gateway itself and removed tenants have trails, for those who are for all tenants', async (t) => {
  const options = { upstreams: {}, top: { audit: {}, admin } }
  const rig = await adminGateway(t, options)
  const team = { auth: { keys: [{ name: 'tom', key: 'gh_key_of_tom_0123456789' }] }, upstreams: {} }
  t.equal((await rig.call('PUT', '/v1/tenants/team', { body: team })).status, 201)
  t.equal((await rig.call('DELETE', '/v1/tenants/team', { headers: { 'If-Match': '*' } })).status, 204)
  const globex = { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} }
  const top = { ...options.top, limits: { drainMs: 4_000 } }
  const events = await adminEvents(t, rig.adminUrl, '/v1/audit/trails/(gateway)', adminKeys.auditor)
  rig.reload(configOf({ ...options, tenants: { globex }, top }))
  await until('it is told as it is made', () => events.text.includes('configuration.reload'))

  const get = async (path: string, by: string) => await rig.call('GET', path, { key: by })
  const trails = (await get('/v1/audit/trails', adminKeys.auditor)).json as Records
  t.match(
    trails.items.map(({ trail, of }) => `${String(trail)}: ${String(of)}`),
    ['(gateway): gateway', 'acme: tenant', 'globex: tenant', 'team: removed tenant']
  )
  const recordsOf = async (trail: string, by: string) => {
    const { status, json, text } = await get(`/v1/audit/trails/${trail}`, by)
    if (status !== 200) throw new Error(text)
    return (json as Records).items
  }
  for (const by of [adminKeys.auditor, adminKeys.platform]) {
    await until('what the file changed is of no tenant', async () =>
      (await recordsOf('(gateway)', by)).some(({ action }) => action === 'configuration.reload')
    )
    const actions = new Set((await recordsOf('team', by)).map(({ action }) => action))
    t.ok(actions.has('tenant.put') && actions.has('tenant.delete'), 'its removal is in its trail')
    for (const part of ['heads', 'verification'])
      t.equal((await get(`/v1/audit/trails/team/${part}`, by)).status, 200, part)
  }
  t.match(await get('/v1/tenants/team/audit', adminKeys.auditor), { status: 404 }, 'there is no such tenant')
  t.match(await get('/v1/audit/trails/nobody', adminKeys.auditor), { status: 404, json: { detail: /audit trail/ } })
  for (const by of [adminKeys.acme, adminKeys.viewer])
    for (const path of ['/v1/audit/trails', '/v1/audit/trails/team', '/v1/audit/trails/acme/heads'])
      t.equal((await get(path, by)).status, 403, path)
  // An auditor of one tenant has the trail of that one.
  t.match((await get('/v1/audit/trails', globexAuditor)).json, { items: [{ trail: 'globex' }] })
  t.equal((await get('/v1/audit/trails/globex', globexAuditor)).status, 200)
  for (const trail of ['(gateway)', 'acme', 'team'])
    t.equal((await get(`/v1/audit/trails/${trail}`, globexAuditor)).status, 404, trail)
  const printed = await cli(['trail', 'records', '(gateway)', '--admin', rig.adminUrl], {
    GATEHOUSE_ADMIN_KEY: adminKeys.auditor
  })
  t.match(printed, { code: 0, out: /configuration\.reload/ })
})

t.test('records that are cut off at the end of a log are missed, online and offline', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'g.db')
  const options = { upstreams: {}, store: `file:${path}`, top: { audit: {}, admin } }
  const first = await adminGateway(t, options)
  await modernRequest(first.url(), 'tools/list', {}, { token: key })
  await first.close()

  const opened = async () => await createSqliteStore({ path, clock: Date, log: quiet })
  /** All that the log has, and its only run. */
  async function stored() {
    const store = await opened()
    const [entry = ''] = await store.entries(auditIndexKey('acme'))
    const lines: string[] = []
    for await (const each of readAudit(store, 'acme')) lines.push(each)
    await store.close()
    return { text: lines.join(''), segment: JSON.parse(entry) as [string, number] }
  }
  const { text, segment } = await stored()
  const [chain] = segment
  const whole = text.trimEnd().split('\n')
  t.ok(whole.length >= 3, 'a beginning, a call and an end')
  const cut = `${whole.slice(0, -1).join('\n')}\n`

  const second = await adminGateway(t, options)
  const verified = async () => (await second.call('GET', '/v1/tenants/acme/audit/verification')).json
  t.match(await verified(), { problems: [] }, 'the control: nothing is missing')
  const env = { GATEHOUSE_ADMIN_KEY: adminKeys.acme, GATEHOUSE_ADMIN_URL: second.adminUrl }
  const heads = await cli(['audit', 'heads', 'acme', '--json'], env)
  t.match(JSON.parse(heads.out), [{ chain, seq: whole.length, madeRoom: false }])
  const file = join(folder, 'heads.json')
  writeFileSync(file, heads.out)
  const missing = new RegExp(
    `wrong: ${chain.replace('/', '\\/')} is cut off after record ${whole.length - 1}: the gateway knew ${whole.length}`
  )
  t.match(await cli(['audit', 'verify', '-'], {}, cut), { code: 0 }, 'by itself it is not told from a killed gateway')
  for (const [how, given] of [
    ['online', ['--tenant', 'acme']],
    ['offline', ['--head', file]]
  ] as const) {
    const verify = ['audit', 'verify', '-', ...given]
    t.match(await cli(verify, env, text), { code: 0 }, `${how}: the whole log`)
    t.match(await cli(verify, env, cut), { code: 1, out: missing }, `${how}: without its last record`)
    t.match(await cli(verify, env, '\n'), { code: 1, out: /wrong: .* is missing: the gateway knew it with/ }, how)
  }
  writeFileSync(file, 'anything')
  t.match(await cli(['audit', 'verify', '-', '--head', file], env, text), { code: 2, err: /has no heads/ })
  const refused = await cli(['audit', 'verify', '-', '--tenant', 'globex'], env, text)
  t.match(refused, { code: 1, err: /403|may not|404|no such/i }, 'a key of another tenant')
  await second.close()

  // The same where the store itself was changed.
  const store = await opened()
  const place = auditSegmentKey('acme', segment[0], String(segment[1]))
  await store.delete(place)
  await store.append(place, cut, { ttlMs: 60_000, keep: 10 })
  await store.close()
  const third = await adminGateway(t, options)
  const { json } = await third.call('GET', '/v1/tenants/acme/audit/verification')
  t.match((json as { problems: string[] }).problems, [
    new RegExp(`is cut off after record ${whole.length - 1}: (?:the gateway|another run) knew ${whole.length}`)
  ])
})
