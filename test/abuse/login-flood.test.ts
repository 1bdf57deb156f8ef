// Attack: strangers, of whom the login front must take requests, flood it: registrations with long bodies, sign-ins that
// are begun, tokens that do not exist.

import t from 'tap'
import { attacked, keys } from './kit.ts'

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
  const { client_id: clientId } = (await (
    await fetch(`${front}/reg`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' })
    })
  ).json()) as { client_id: string }
  const begin = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    code_challenge: 'x'.repeat(43),
    code_challenge_method: 'S256'
  })
  const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'none' }
  const requests = [
    () => fetch(`${front}/reg`, { method: 'POST', headers: json, body: named(50_000) }),
    () => fetch(`${front}/reg`, { method: 'POST', headers: json, body: named(7_000) }),
    () => fetch(`${front}/auth?${begin}`, { redirect: 'manual' }),
    () => fetch(`${front}/token`, { method: 'POST', body: new URLSearchParams(refresh) }),
    () => fetch(`${front}/.well-known/openid-configuration`)
  ]
  const neighbour = await gateway.neighbour()
  const statuses = new Map<number, number>()
  const flood = async (): Promise<void> => {
    for (let n = 0; n < 100; n++)
      for (const request of requests) {
        const { status, body } = await request()
        await body?.cancel()
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
  }
  await Promise.all(Array.from({ length: 10 }, flood))
  const measured = await neighbour.stop()
  t.same(measured.failures, [])
  t.ok(measured.calls > 0)
  t.same(new Set(statuses.keys()), new Set([200, 201, 303, 400, 429]), 'some of it was served')
  t.ok(gateway.peakMemory() < 600 * 1024 * 1024)
  const said = gateway.log().filter(({ msg }) => msg === 'the login front is asked too often')
  t.ok(said.length <= 3, 'and the log is not filled')
})
