// How many verify audit logs at once: whoever does, or does not let one end, keeps nobody else from it.

import { hash } from 'node:crypto'
import t from 'tap'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/port.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'

/** Of an administrator of as many tenants as may verify at once. */
const manyKey = `gha_${hash('sha256', 'many', 'base64url')}`

t.test('of one tenant its administrators have a place, others have one, and each is given back', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  const waiting = new Set<() => void>()
  let holding = false
  const slow: Store = {
    ...store,
    async entries(key) {
      if (holding && key.startsWith('audit:'))
        await new Promise<void>((resolve) => {
          waiting.add(resolve)
        })
      return await store.entries(key)
    }
  }
  const many = Array.from({ length: 8 }, (_, n) => `tenant-${n}`)
  const somebodysKey = 'gh_key_of_somebody_0123456789'
  const auth = { keys: [{ name: 'somebody', key: somebodysKey }] }
  const own = { name: 'many', role: 'tenant-admin', tenants: many, sha256: hash('sha256', manyKey) }
  const rig = await adminGateway(t, {
    upstreams: {},
    tenants: Object.fromEntries(many.map((name) => [name, { auth, upstreams: {} }])),
    overrides: { store: slow },
    top: { audit: { store: true }, admin: { ...adminSection, keys: [...adminSection.keys, own] } }
  })
  const pathOf = (tenant: string): string => `/v1/tenants/${tenant}/audit/verification`
  const verified = async (tenant: string, who: string) => (await rig.call('GET', pathOf(tenant), { key: who })).status
  for (const [tenant, token, admin] of [
    ['acme', key, adminKeys.acme],
    ['globex', globexKey, adminKeys.globex],
    ...many.map((name) => [name, somebodysKey, manyKey] as const)
  ] as const) {
    await modernRequest(rig.url('default', tenant), 'tools/list', {}, { token })
    await until('it is recorded', async () => {
      const { json } = await rig.call('GET', pathOf(tenant), { key: admin })
      return (json as { records: number }).records > 0
    })
  }

  holding = true
  const stream = await adminEvents(t, rig.adminUrl, pathOf('acme'), adminKeys.acme)
  await until('it reads', () => waiting.size > 0)
  t.equal(await verified('acme', adminKeys.acme), 429)
  const others = [verified('acme', adminKeys.auditor), verified('globex', adminKeys.globex)]
  await until('others verify meanwhile', () => waiting.size === 3)
  t.equal(await verified('acme', adminKeys.platform), 429, 'one for all who are not of the tenant')

  stream.close()
  holding = false
  for (const go of waiting) go()
  t.same(await Promise.all(others), [200, 200])
  await until('the place of who hung up is given back', async () => (await verified('acme', adminKeys.acme)) === 200)
  t.equal(await verified('acme', adminKeys.platform), 200)

  // As many tenants as there are places.
  waiting.clear()
  holding = true
  const all = many.map((tenant) => verified(tenant, manyKey))
  await until('all places of tenants are taken', () => waiting.size === many.length)
  t.equal(await verified('acme', adminKeys.acme), 429)
  const byPlatform = verified('acme', adminKeys.platform)
  await until('that of the platform is not', () => waiting.size === many.length + 1)
  holding = false
  for (const go of waiting) go()
  t.same(new Set(await Promise.all([...all, byPlatform])), new Set([200]))
})
