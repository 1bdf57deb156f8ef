// A server that does not take the answer to its server request, because it belongs to another session or replica of it
// by now: the call that would wait for it ends at once.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { capableClient, isServerRequest, post } from '../kit/server-request.ts'
import { postEvents } from '../kit/events.ts'
import type { Json } from '../kit/mcp-server.ts'
import { script } from '../kit/parking-gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const unknown = {
  code: -32603,
  message: /refused the answer/,
  data: { reason: 'upstream_unavailable', outcome: 'unknown' }
}
const call = { name: 'elicit', arguments: {} }

for (const status of [undefined, 404, 503]) {
  const what = status === undefined ? 'an answer that is taken' : `an answer that is refused with ${status}`
  const acme = () =>
    acmeGateway(t, { script: { ...script, answers: 'sse' } }).then((made) => {
      if (status !== undefined)
        made.upstream.override(
          ({ message }) => message?.['method'] === undefined && message?.['result'] !== undefined,
          (response) => {
            response.writeHead(status).end()
          },
          Infinity
        )
      return made
    })

  t.test(`${what}, of a client of 2026-07-28`, async (t) => {
    const ada = { url: (await acme()).url(), token: keyOf.ada }
    const first = await round(ada, call)
    const { answer } = await round(ada, call, answers(first, accepted()))
    if (status === undefined) t.match(answer.json, { result: { resultType: 'complete' } })
    else t.match(answer.json.error, { ...unknown, code: Number })
  })

  t.test(`${what}, of a client with a session`, async (t) => {
    const made = await acme()
    const client = await capableClient(made.url(), keyOf.ada)
    const stream = await postEvents(made.url(), client, 'the call', 'tools/call', call)
    const question = await stream.next('the question', isServerRequest)
    await post(made.url(), client, { id: question.id, result: { action: 'accept', content: {} } })
    const { result, error } = await stream.next('the end', (message: Json) => message['id'] === 'the call')
    if (status === undefined) t.ok(result)
    else t.match(error, { ...unknown, code: Number })
  })
}
