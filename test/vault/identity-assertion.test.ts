// Enterprise-managed authorization: whoever signed in at the company's provider uses an upstream that trusts it, without
// connecting an account. The provider gives an assertion for the ID token (ID-JAG), for which the authorization server
// of the upstream gives a token.

import t from 'tap'
import { browser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { issuer } from '../kit/issuer.ts'
import type { Teardown } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { logIn, loginGateway } from '../login/kit.ts'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }

async function setup(t: Teardown) {
  const port = await freePort()
  const provider = await identityProvider(t, `http://127.0.0.1:${port}/login/acme/callback`)
  const server = await issuer(t, { assertionsOf: provider.url })
  const up = await protectedUpstream(t, server)
  provider.clientAt.set(server.url, server.exchanger.clientId)
  const auth = {
    type: 'tokenExchange',
    issuer: provider.url,
    ...providerClient,
    subjectToken: 'idToken',
    identityAssertion: server.exchanger
  }
  const front = await loginGateway(t, {
    port,
    provider,
    upstreams: { up: { type: 'http', url: up.url, auth } },
    endpoints: { default: { upstreams: ['up'] } },
    auth: { keys: [{ name: 'robot', key: 'gh_a-key-of-a-robot-that-signs-in-nowhere' }] },
    // The authorization server is found at the upstream, and is on loopback.
    top: { egress: { allow: ['127.0.0.0/8'] } }
  })
  const call = async (token: string) => (await modernRequest(front.url(), 'tools/call', echo, { token })).json
  const signIn = async (person: string) => {
    provider.person = person
    return (await logIn(front, front.url(), browser())).body.access_token
  }
  return { provider, server, up, front, call, signIn }
}

t.test('each person who signed in at the provider is known at the upstream, and connects nothing', async (t) => {
  const { provider, up, front, call, signIn } = await setup(t)
  const tokens = [await signIn('ada'), await signIn('bob')]
  for (const token of tokens) for (let n = 0; n < 3; n++) t.ok((await call(token)).result)
  t.same(provider.asserted, ['ada', 'bob'], 'one assertion for each token')
  t.same(new Set(up.admitted.map(({ sub }) => sub)), new Set(['ada', 'bob']))
  for (const { aud } of up.admitted) t.equal(aud, up.url)
  const presented = up.presented.join()
  for (const token of tokens) t.notMatch(presented, token.slice(-40), 'the token of a caller never comes there')
  t.notMatch(JSON.stringify(front.log), /eyJ[\w-]{20,}\.eyJ/, 'and no token is logged')
})

t.test(
  'who did not sign in there is refused, and so is everybody where the provider knows no such server',
  async (t) => {
    const { provider, server, up, front, call, signIn } = await setup(t)
    t.match((await call('gh_a-key-of-a-robot-that-signs-in-nowhere')).error, {
      data: { reason: 'upstream_unavailable' }
    })
    t.same(provider.asserted, [])
    provider.clientAt.delete(server.url)
    t.match((await call(await signIn('ada'))).error, { data: { reason: 'upstream_unavailable' } })
    t.match(JSON.stringify(front.log), /an audience that is known/)
    provider.clientAt.set(server.url, 'somebody-else')
    t.match((await call(await signIn('ada'))).error, { data: { reason: 'upstream_unavailable' } })
    t.same(up.admitted, [], 'an assertion for another client is worth nothing')
    provider.clientAt.set(server.url, server.exchanger.clientId)
    t.ok((await call(await signIn('ada'))).result, 'and this is how it works')
  }
)
