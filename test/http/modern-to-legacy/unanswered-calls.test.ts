// A client that answers none of the questions of an older server, where no question names its call: each call beyond
// the eighth needs the place of another, whose server obeys the cancellation and so says nothing more.

import t from 'tap'
import { key } from '../../kit/gateway.ts'
import { answersTo, parkingGateway, replies, round, serverRequests, steps, textOf } from '../../kit/parking-gateway.ts'
import type { Round } from '../../kit/parking-gateway.ts'

/** Once it is turned away, the server works on until it is cancelled; it never answers. */
const question = steps({ ask: [serverRequests.form] }, { wait: true })
const places = 8

// After this time without an answer a place would be free again: it does not pass here, however long a process takes to
// start.
const abandonedMs = 10_000
const setTimer = globalThis.setTimeout
globalThis.setTimeout = Object.assign(
  (run: () => void, ms?: number, ...rest: []) =>
    ms === abandonedMs ? setTimer(run, 60 * 60_000).unref() : setTimer(run, ms, ...rest),
  setTimer
) as typeof setTimeout

t.test('no call waits for the process or the stream of a call that made room for it', async (t) => {
  const acme = await parkingGateway(t)
  for (const transport of ['stdio', 'stream']) {
    const call = (params = question): Promise<Round> => round(acme.url(transport), 'tools/call', params, { token: key })
    const asked = { result: { resultType: 'input_required' } }
    for (let n = 0; n < places; n++) t.match(await call(), asked, `${transport}: call ${n + 1}`)
    for (let n = 0; n < 4; n++) t.match(await call(), asked, `${transport}: call ${places + n + 1}`)
    const answerable = steps({ ask: [serverRequests.form] })
    const last = await call(answerable)
    const { result } = await call({
      ...answerable,
      requestState: last.requestState,
      inputResponses: answersTo(last.inputRequests)
    })
    t.same(textOf(result), [replies.form], 'a question that is answered has its result')
  }
})
