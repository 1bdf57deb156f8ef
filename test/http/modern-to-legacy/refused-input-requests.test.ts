// A person may say no to whatever a server asks: the older server gets the refusal in the words of 2025-11-25, at once,
// and goes on.

import t from 'tap'
import type { Json } from '../../kit/mcp-server.ts'
import { parkingGateway, replies, round, serverRequests, steps, textOf, transports } from '../../kit/parking-gateway.ts'

const refused = { error: { code: -1, message: 'The user refused the request.' } }

t.test('sampling and roots are refused like elicitations, and the server gets the proper error', async (t) => {
  const acme = await parkingGateway(t)
  for (const transport of transports) {
    for (const action of ['cancel', 'decline']) {
      const call = steps({ ask: [serverRequests.sample, serverRequests.roots, serverRequests.form] })
      const first = await round(acme.url(transport), 'tools/call', call)
      const inputResponses = Object.fromEntries(Object.keys(first.inputRequests).map((key) => [key, { action }]))
      t.equal(Object.keys(inputResponses).length, 3)
      const last = await round(acme.url(transport), 'tools/call', {
        ...call,
        requestState: first.requestState,
        inputResponses
      })
      t.match(last, { status: 200, result: { resultType: 'complete' } })
      t.same(textOf(last.result), [refused, refused, { action }], `${transport}: ${action}`)
    }
  }
})

t.test('one may be refused and another answered; what is neither is still no response', async (t) => {
  const acme = await parkingGateway(t)
  const call = steps({ ask: [serverRequests.sample, serverRequests.roots] })
  const first = await round(acme.url('http'), 'tools/call', call)
  const keyOf = (method: string): string =>
    Object.entries(first.inputRequests).find(([, asked]) => asked.method === method)?.[0] ?? ''
  const retry = (sample: Json, roots: Json) =>
    round(acme.url('http'), 'tools/call', {
      ...call,
      requestState: first.requestState,
      inputResponses: { [keyOf('sampling/createMessage')]: sample, [keyOf('roots/list')]: roots }
    })
  for (const wrong of [{ action: 'accept' }, { action: 'refuse' }, {}])
    t.match((await retry(wrong, replies.roots)).error, { code: -32602, message: /no result of sampling/ })
  const { result } = await retry({ action: 'decline' }, replies.roots)
  t.same(textOf(result), [refused, replies.roots])
})
