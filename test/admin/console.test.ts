// The console without a browser: where its files are found, and what made-up sessions cost whoever makes them up.

import type { FastifyRequest } from 'fastify'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { createAdminAccess, type Administrator } from '../../src/admin/access.ts'
import { packageFolder } from '../../src/admin/console/files.ts'
import { createConsoleSessions } from '../../src/admin/console/sessions.ts'
import type { AdminConfig } from '../../src/config/snapshot.ts'
import { adminCall, adminGateway, adminKeys } from '../kit/admin.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'

t.test('the folder of a package is found from its entry, and where there is none, that is said', async (t) => {
  const root = join('/', 'srv', 'node_modules')
  t.equal(packageFolder('htm', join(root, 'htm', 'dist', 'htm.js')), join(root, 'htm'))
  t.equal(packageFolder('@a/b', join(root, '@a', 'b', 'b.js')), join(root, '@a', 'b'))
  for (const entry of [join('/', 'elsewhere', 'htm', 'htm.js'), join(root, 'not-htm', 'htm.js'), 'htm.js'])
    t.throws(() => packageFolder('htm', entry), { message: /install with npm/ })
})

t.test('made-up sessions are counted by address, and keep nobody out who has a right one', async (t) => {
  const log = pino({ enabled: false })
  let now = 0
  const clock = { now: () => now, timer: () => ({ close() {}, unref() {}, refresh() {} }) }
  const key: AdminConfig['keys'][number] = { name: 'root', role: 'viewer', sha256: 'a'.repeat(64) }
  const snapshot = () => ({ admin: { keys: [key] } as unknown as AdminConfig })
  const access = createAdminAccess({ snapshot, clock, wall: clock, fetchFor: () => createFetch(), log })
  const store = await createSqliteStore({ path: ':memory:', clock, log })
  t.teardown(() => store.close())
  const sessions = createConsoleSessions({ store, wall: clock, access })
  const request = (cookie: string, token: string) =>
    ({
      method: 'GET',
      ip: '192.0.2.1',
      raw: { rawHeaders: [] },
      headers: { cookie, 'gatehouse-console': token }
    }) as unknown as FastifyRequest
  const signedIn = await sessions.signIn({ by: key } as unknown as Administrator, request('', ''))
  const [cookie = ''] = signedIn.cookie.split(';')
  const codeOf = (made: FastifyRequest) =>
    sessions.authenticate(made).then(
      ({ name }) => name,
      ({ code }) => code as string
    )
  t.equal(await codeOf(request(cookie, 'another')), 'unauthenticated')
  const codes = new Set<string>()
  for (let tries = 0; tries < 500; tries++) codes.add(await codeOf(request('gatehouse-console=a.0.c', 'd')))
  t.same([...codes], ['unauthenticated', 'rate_limited'])
  const right = request(cookie, signedIn.token)
  t.equal(await codeOf(right), 'root')
  const who = await sessions.authenticate(right)
  t.ok(sessions.isLetIn(who))
  now = signedIn.until
  t.notOk(sessions.isLetIn(who), 'what it has open ends with its time')
})

t.test('a stream ends with the session that opened it, and not with another one', async (t) => {
  const { adminUrl } = await adminGateway(t, { upstreams: {} })
  const signedIn = async () => {
    const headers = { Origin: adminUrl }
    const body = { key: adminKeys.viewer }
    const answer = await adminCall(adminUrl, 'POST', '/console/session', { key: null, headers, body })
    const [cookie = ''] = answer.headers['set-cookie']?.[0]?.split(';') ?? []
    return { Cookie: cookie, 'Gatehouse-Console': (answer.json as { token: string }).token }
  }
  const [own, other] = [await signedIn(), await signedIn()]
  const open = async (session: Readonly<Record<string, string>>) => {
    const headers = { ...session, Accept: 'text/event-stream' }
    const answer = await fetch(`${adminUrl}/v1/tenants/acme/calls`, { headers })
    t.equal(answer.status, 200)
    return answer
  }
  const [ending, staying] = [await open(own), await open(other)]
  const out = { key: null, headers: { ...own, Origin: adminUrl } }
  t.equal((await adminCall(adminUrl, 'DELETE', '/console/session', out)).status, 204)
  t.match(await ending.text(), '"reason":"access"')
  const reader = staying.body?.getReader()
  t.match(await reader?.read(), { done: false })
  await reader?.cancel()
})
