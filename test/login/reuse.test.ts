// A code or refresh token that two use at the same moment, at two processes: nobody knows which of them is the thief,
// so that both are out (RFC 9700 section 4.14).

import t, { type Test } from 'tap'
import { loginKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/port.ts'
import { send } from '../kit/client.ts'
import { quiet } from '../store/kit.ts'
import { browser } from '../kit/browser.ts'
import { begin, logIn, loginGateway, pkce, redirectUri, register } from './kit.ts'

/** Two processes on one store, where the first two who use up a thing of the kind do so at the same moment. */
async function pair(t: Test) {
  const inner = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => inner.close())
  const met = Promise.withResolvers<void>()
  let raced = ''
  let waiting = 0
  const store: Store = {
    ...inner,
    async set(key, value, options) {
      if (raced !== '' && key.startsWith(raced) && options?.when === 'absent') {
        waiting += 1
        if (waiting === 2) met.resolve()
        await met.promise
      }
      return await inner.set(key, value, options)
    },
    close: async () => {}
  }
  const front = await loginGateway(t, { overrides: { store } })
  const other = await loginGateway(t, {
    overrides: { store },
    provider: front.provider,
    top: { publicUrl: front.origin }
  })
  const { host } = new URL(front.origin)
  async function ask(at: { readonly port: number }, parameters: Record<string, string>) {
    const headers = { host, 'content-type': 'application/x-www-form-urlencoded' }
    const url = `http://127.0.0.1:${at.port}/login/acme/token`
    const { status, json } = await send(url, { headers, body: new URLSearchParams(parameters).toString() })
    return { status, json: json as Record<string, unknown> }
  }
  async function race(kind: string, parameters: Record<string, string>) {
    raced = loginKey('acme', `${kind} used`, '').replace(/[^:]+$/, '')
    const answers = await Promise.all([ask(front, parameters), ask(other, parameters)])
    raced = ''
    return answers.toSorted((a, b) => a.status - b.status)
  }
  return { front, other, ask, race, isRaced: () => waiting === 2 }
}

t.test('of two who use one refresh token at the same moment, both are out', async (t) => {
  const { front, other, ask, race, isRaced } = await pair(t)
  const { clientId, body } = await logIn(front, front.url())
  const grant = { grant_type: 'refresh_token', client_id: clientId }
  const next = await ask(other, { ...grant, refresh_token: String(body['refresh_token']) })
  t.equal(next.status, 200, 'one after the other at both processes is as ever')
  const [winner, loser] = await race('RefreshToken', { ...grant, refresh_token: String(next.json['refresh_token']) })
  t.ok(isRaced(), 'both had found it unused')
  t.equal(winner?.status, 200)
  t.match(loser, { status: 400, json: { error: 'invalid_grant' } })
  const after = await ask(front, { ...grant, refresh_token: String(winner?.json['refresh_token']) })
  t.match(after, { status: 400, json: { error: 'invalid_grant' } }, 'what the first got is good for nothing')
  t.equal((await logIn(front, front.url())).status, 200, 'the person may begin anew')
})

t.test('of two who use one code at the same moment, both are out', async (t) => {
  const { front, ask, race, isRaced } = await pair(t)
  const { clientId } = await register(front)
  const { verifier, challenge } = pkce()
  const person = browser()
  const page = await person.go(begin(front, clientId, { code_challenge: challenge }), redirectUri)
  const { url } = await person.press(page, '/allow', redirectUri)
  const code = url.searchParams.get('code') ?? ''
  const grant = { grant_type: 'authorization_code', redirect_uri: redirectUri, client_id: clientId }
  const [winner, loser] = await race('AuthorizationCode', { ...grant, code, code_verifier: verifier })
  t.ok(isRaced(), 'both had found it unused')
  t.equal(winner?.status, 200)
  t.match(loser, { status: 400, json: { error: 'invalid_grant' } })
  const refresh = { grant_type: 'refresh_token', client_id: clientId }
  const after = await ask(front, { ...refresh, refresh_token: String(winner?.json['refresh_token']) })
  t.match(after, { status: 400, json: { error: 'invalid_grant' } })
})
