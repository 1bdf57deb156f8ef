// The token of a caller, exchanged at its identity provider for one that the upstream takes: each caller their own, once
// for each token, and the token of the caller goes nowhere else.

import { createServer } from 'node:http'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { issuer } from '../kit/issuer.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { protectedUpstream, repeatingHeader } from '../kit/protected-upstream.ts'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }

async function setup(t: Teardown) {
  const idp = await issuer(t, { clients: ['ada', 'bob'] })
  const up = await protectedUpstream(t, idp)
  const auth = { type: 'tokenExchange', issuer: idp.url, ...idp.exchanger }
  const options = {
    upstreams: { up: { type: 'http', url: up.url, auth } },
    auth: { issuers: [{ issuer: idp.url }], keys: [{ name: 'ada', key: keyOf.ada }] }
  }
  const made = await gateway(t, options)
  const tokenOf = (clientId: string) => idp.token({ clientId, resource: made.url() })
  const call = async (token: string) => (await modernRequest(made.url(), 'tools/call', echo, { token })).json
  return { idp, up, made, tokenOf, call, options }
}

t.test('each call shows the upstream what the token of its caller was exchanged for, in both eras', async (t) => {
  const { idp, up, made, tokenOf, call } = await setup(t)
  const tokens = [await tokenOf('ada'), await tokenOf('bob')]
  for (const token of tokens) {
    const client = await legacyClient(made.url(), token)
    for (let n = 0; n < 3; n++) t.ok((await client.request('tools/call', echo)).json.result)
    t.ok((await call(token)).result)
  }
  t.equal(idp.exchanges.length, 2, 'once for each token')
  t.same(new Set(idp.exchanges), new Set(tokens))
  const people = new Set(up.admitted.map(({ sub }) => sub))
  t.same(people, new Set(['ada', 'bob']))
  for (const { aud } of up.admitted) t.equal(aud, up.url)
  const presented = up.presented.join()
  for (const token of tokens) t.notMatch(presented, token.slice(-40), 'the token of a caller never comes there')
  t.notMatch(JSON.stringify(made.log), new RegExp(tokens.map((each) => each.slice(-40)).join('|')))
  for (const token of tokens) {
    repeatingHeader(up)
    for (let n = 0; n < 3; n++) {
      const text = JSON.stringify(await call(token))
      t.match(text, /I was shown Bearer \*\*\*/)
      t.notOk(up.presented.some((each) => text.includes(each.slice(-40))))
    }
  }
  const again = await tokenOf('ada')
  t.ok((await call(again)).result)
  t.equal(idp.exchanges.length, 3, 'a later token is exchanged for itself')
})

t.test(
  'concurrent calls of a caller exchange once, and a refusal is told and not asked for again at once',
  async (t) => {
    const { idp, up, tokenOf, call } = await setup(t)
    const token = await tokenOf('ada')
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(token)))
    t.ok(answers.every(({ result }) => result !== undefined))
    t.equal(idp.exchanges.length, 1)
    idp.exchangeRefused = true
    const admitted = up.presented.length
    const other = await tokenOf('bob')
    for (let n = 0; n < 3; n++) t.ok((await call(other)).error)
    t.equal(idp.exchanges.length, 2)
    t.equal(up.presented.length, admitted, 'the upstream is not asked without one')
  }
)

t.test('while the provider hangs, upstreams that want nothing of it go on', async (t) => {
  const idp = await issuer(t, { clients: ['ada'] })
  let [hanging, ended] = [0, 0]
  const tokenUrl = await listen(
    t,
    createServer((request) => {
      hanging++
      request.socket.on('close', () => ended++)
    })
  )
  const plain = await startUpstream()
  t.teardown(() => plain.close())
  const auth = { type: 'tokenExchange', issuer: idp.url, ...idp.exchanger, tokenUrl: `${tokenUrl}/token` }
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: plain.url, auth }, plain: { type: 'http', url: plain.url } },
    endpoints: { default: { upstreams: ['up', 'plain'] }, other: { upstreams: ['plain'] } },
    auth: { issuers: [{ issuer: idp.url }] }
  })
  const call = async (endpoint: string) => {
    const token = await idp.token({ clientId: 'ada', resource: made.url(endpoint) })
    const request = { ...echo, name: 'plain__echo' }
    return (await modernRequest(made.url(endpoint), 'tools/call', request, { token })).json
  }
  t.ok((await call('other')).result)
  t.equal(hanging, 0, 'nothing is exchanged for an upstream of another endpoint')
  t.ok((await call('default')).result)
  t.same([hanging > 0, ended], [true, 0], 'nor waited for to its end on its own')
})

t.test('callers of another issuer are refused, and so is an upstream that would get the token itself', async (t) => {
  const { idp, up, made, tokenOf, call, options } = await setup(t)
  t.ok((await call(keyOf.ada)).error, 'an API key is no token')
  t.equal(idp.exchanges.length + up.presented.length, 0)
  t.match(JSON.stringify(made.log), /exchanges, and this caller has none of it/)
  const auth = { ...options.upstreams.up.auth, tokenUrl: new URL('/token', up.url).href }
  const evil = await gateway(t, { ...options, upstreams: { up: { ...options.upstreams.up, auth } } })
  const token = await idp.token({ clientId: 'ada', resource: evil.url() })
  t.ok((await modernRequest(evil.url(), 'tools/call', echo, { token })).json.error)
  t.equal(up.presented.length, 0)
  t.match(JSON.stringify(evil.log), /the token endpoint is the upstream itself/)
  t.ok((await call(await tokenOf('ada'))).result, 'and this is how it works')
})
