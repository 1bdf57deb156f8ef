// Attack: a request state in the wrong hands: of another user, for another endpoint, or for another request of the
// same credential. It is bound to the caller, not to the bytes of the token: a fresh one will do.

import t from 'tap'
import { acmeGateway, credentials, keyOf } from '../kit/acme-gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const elicit = { name: 'elicit', arguments: { for: 'ada' } }
const foreign = { status: 200, json: { error: { code: -32602, data: { reason: 'invalid_state' } } } }

for (const kind of credentials) {
  t.test(`a request state is bound to its caller, endpoint and request, with ${kind}`, async (t) => {
    const acme = await acmeGateway(t, {
      endpoints: { default: { upstreams: ['up'], prefix: '' }, twin: { upstreams: ['up'], prefix: '' } }
    })
    const ada = { url: acme.url(), token: await acme.bearer(kind, 'ada') }
    const parked = await round(ada, elicit)
    const back = answers(parked, accepted({ by: 'somebody' }))
    t.match(
      (await round({ ...ada, token: await acme.bearer(kind, 'bob') }, elicit, back)).answer,
      foreign,
      'another user'
    )
    t.match(
      (await round({ ...ada, token: keyOf[kind === 'JWT' ? 'ada' : 'bob'] }, elicit, back)).answer,
      foreign,
      'the same person as another client'
    )
    t.match((await round(ada, { ...elicit, arguments: { for: 'bob' } }, back)).answer, foreign, 'other arguments')
    t.match((await round(ada, { name: 'sample', arguments: { for: 'ada' } }, back)).answer, foreign, 'another tool')
    t.match(
      (await round(ada, { name: 'greet', arguments: { who: 'x' } }, back, 'prompts/get')).answer,
      foreign,
      'another method'
    )
    const { state = '' } = parked
    for (const requestState of [`${state}x`, state.slice(1), state.toUpperCase(), '', 7, null, {}])
      t.match((await round(ada, elicit, { ...back, requestState })).answer, foreign, 'another state')
    t.match(
      (await round({ ...ada, url: acme.url('twin') }, elicit, back)).answer,
      kind === 'JWT' ? { status: 401 } : foreign,
      'another endpoint'
    )
    t.equal(acme.upstream.server.answers.size, 0, 'nothing of it reached the upstream')

    // A client refreshes its token between two rounds: the bytes differ, the caller does not.
    const token = await acme.bearer(kind, 'ada', { jti: 'fresh' })
    if (kind === 'JWT') t.not(token, ada.token)
    t.match((await round({ ...ada, token }, elicit, back)).answer.json, { result: { resultType: 'complete' } })
    t.equal(acme.upstream.server.answers.size, 1)
    t.match((await round({ ...ada, token }, elicit, back)).answer, foreign, 'once')
  })
}
