// The state of a parked call is worth something to the caller it was given to, at the endpoint and for the request it was given for, and
// to nobody else: not to another user of the tenant, not with the same credential for another call. A fresh token of the same caller will do.

import t from 'tap'
import { acme, credentials, keyOf } from '../kit/acme.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const elicit = { name: 'elicit', arguments: { for: 'ada' } }
const foreign = { status: 200, json: { error: { code: -32602, data: { reason: 'invalid_state' } } } }

for (const kind of credentials) {
  t.test(`of a caller with ${kind}`, async (t) => {
    const house = await acme(t)
    const ada = { url: house.url(), token: await house.bearer(kind, 'ada') }
    const parked = await round(ada, elicit)
    const back = answers(parked, accepted({ by: 'somebody' }))
    t.match((await round({ ...ada, token: await house.bearer(kind, 'bob') }, elicit, back)).answer, foreign, 'another user')
    t.match((await round({ ...ada, token: keyOf[kind === 'JWT' ? 'ada' : 'bob'] }, elicit, back)).answer, foreign, 'the same person as another client')
    t.match((await round(ada, { ...elicit, arguments: { for: 'bob' } }, back)).answer, foreign, 'other arguments')
    t.match((await round(ada, { name: 'sample', arguments: { for: 'ada' } }, back)).answer, foreign, 'another tool')
    t.match((await round(ada, { name: 'greet', arguments: { who: 'x' } }, back, 'prompts/get')).answer, foreign, 'another method')
    t.match((await round(ada, elicit, { ...back, requestState: `${parked.state}x` })).answer, foreign, 'another state')
    t.match((await round({ ...ada, url: house.url('files') }, { ...elicit, name: 'up__elicit' }, back)).answer.json, { error: { code: /-32602|401/ } }, 'another endpoint')
    t.equal(house.upstream.server.answers.size, 0, 'nothing of it reached the upstream')

    // A client refreshes its token between two rounds: the bytes differ, the caller does not.
    const token = await house.bearer(kind, 'ada', { jti: 'fresh' })
    if (kind === 'JWT') t.not(token, ada.token)
    t.match((await round({ ...ada, token }, elicit, back)).answer.json, { result: { resultType: 'complete' } })
    t.equal(house.upstream.server.answers.size, 1)
  })
}
