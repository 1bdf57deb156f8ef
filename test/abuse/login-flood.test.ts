// Attack: strangers, of whom the login front must take requests, flood it: registrations with long bodies, sign-ins that
// are begun, tokens that do not exist.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, registeredClient } from './kit.ts'

t.test('a flood at the login front of one tenant takes nothing from another', async (t) => {
  const login = { provider: { issuer: 'http://127.0.0.1:9', clientId: 'gatehouse', clientSecret: 'secret' } }
  const gateway = await attacked(t, {
    top: { publicUrl: 'http://localhost:9' },
    tenant: { auth: { keys: [{ name: 'attacker', key: keys.attacker }], login } }
  })
  const front = `${gateway.origin}/login/acme`
  const redirectUri = 'http://127.0.0.1:1/cb'
  const named = (chars: number): string =>
    JSON.stringify({ redirect_uris: [redirectUri], client_name: 'x'.repeat(chars) })
  const json = { 'content-type': 'application/json' }
  const { clientId, begin } = await registeredClient(gateway)
  const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'none' }
  const requests = [
    () => fetch(`${front}/reg`, { method: 'POST', headers: json, body: named(50_000) }),
    () => fetch(`${front}/reg`, { method: 'POST', headers: json, body: named(7_000) }),
    () => fetch(begin, { redirect: 'manual' }),
    () => fetch(`${front}/token`, { method: 'POST', body: new URLSearchParams(refresh) }),
    () => fetch(`${front}/.well-known/openid-configuration`)
  ]
  const neighbour = await gateway.neighbour()
  const statuses = new Map<number, number>()
  const flood = async (): Promise<void> => {
    for (let n = 0; n < 40; n++)
      for (const request of requests) {
        const { status, body } = await request()
        await body?.cancel()
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
  }
  await Promise.all(Array.from({ length: 10 }, flood))
  const measured = await neighbour.stop()
  t.same(measured.failures, [])
  t.ok(measured.meanwhile > 0, 'calls are answered meanwhile')
  t.same(new Set(statuses.keys()), new Set([200, 201, 303, 400, 429]), 'some of it was served')
  t.ok(gateway.peakMemory() < 600 * 1024 * 1024)
  const said = gateway.log().filter(({ msg }) => msg === 'the login front is asked too often')
  t.ok(said.length <= 3, 'and the log is not filled')
})

t.test('queries of thousands of parameters hold nobody up', async (t) => {
  const login = { provider: { issuer: 'http://127.0.0.1:9', clientId: 'gatehouse', clientSecret: 'secret' } }
  const gateway = await attacked(t, {
    watchTurns: true,
    top: { publicUrl: 'http://localhost:9' },
    tenant: { auth: { keys: [{ name: 'attacker', key: keys.attacker }], login } }
  })
  const ask = (count: number) =>
    send(`${gateway.origin}/login/acme/auth?client_id=nobody${'&a=b'.repeat(count)}`, { method: 'GET' })
  const [few, many] = [await ask(90), await ask(7_000)]
  t.match([few.status, few.text], [400, /^<!doctype html>/], 'the control: a page says that there is no such app')
  t.match([many.status, many.text], [400, /more than 100 parameters/])
  t.ok((await gateway.longestTurnMs(60, () => ask(7_000))) < 60)
})

t.test('sign-ins at a provider that hangs take no descriptors from another tenant', async (t) => {
  const asked: ServerResponse[] = []
  const provider = createServer((_request, response) => asked.push(response)).listen(0, '127.0.0.1')
  t.teardown(() => {
    provider.closeAllConnections()
    provider.close()
  })
  await until('the provider listens', () => provider.listening)
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const login = { provider: { issuer, clientId: 'gatehouse', clientSecret: 'secret' } }
  const gateway = await attacked(t, {
    descriptors: 200,
    top: { publicUrl: 'http://localhost:9' },
    tenant: { auth: { keys: [{ name: 'attacker', key: keys.attacker }], login } }
  })
  const { begun } = await registeredClient(gateway)
  const signIn = async (): Promise<void> => {
    const [path, sent] = await begun()
    await send(gateway.origin + path, { method: 'GET', ...sent })
  }
  const neighbour = await gateway.neighbour()
  for (let n = 0; n < 90; n++) void signIn().catch(() => {})
  await until('it is asked', () => asked.length > 0)
  for (let n = 0; n < 3; n++) {
    const client = await legacyClient(gateway.neighbourUrl, keys.neighbour)
    t.match((await client.request('tools/call', { name: 'calm__echo', arguments: {} })).json, { result: {} })
  }
  t.equal(asked.length, 1, 'once for all')
  t.same((await neighbour.stop()).failures, [])
  t.equal(gateway.log().filter(({ msg }) => String(msg).includes('no file descriptor')).length, 0)
})
