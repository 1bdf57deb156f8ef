// Attack: thousands of requests on few connections, sent without waiting for an answer. All that one reading of a
// socket holds would be worked on at once.

import t from 'tap'
import { modernMessage } from '../kit/modern-client.ts'
import { dial, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, type Attacked } from './kit.ts'

/** To read them takes a tenth of it; to work on all of them takes seconds. */
const maxTurnMs = 400

const live = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'
const ofNobody = 'GET /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

function listTools({ origin }: Attacked): string {
  const { headers, body } = modernMessage('tools/list', {}, { token: keys.attacker })
  const lines = Object.entries({ Host: new URL(origin).host, ...headers, 'Content-Length': body.length })
  return `POST /t/acme/mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

t.test('of thousands of requests at once, nearly none is worked on, and a neighbour is served', async (t) => {
  const gateway = await attacked(t, { watchTurns: true })
  const neighbour = await gateway.neighbour()
  const port = Number(new URL(gateway.origin).port)
  for (const one of [live, ofNobody, listTools(gateway)]) {
    let answers = 0
    const ms = await gateway.longestTurnMs(maxTurnMs, () => {
      answers = 0
      return Promise.all(
        Array.from({ length: 30 }, async () => {
          const socket = dial(port)
          socket.write(one.repeat(900))
          answers += (await untilClosed(socket)).split('HTTP/1.1 ').length - 1
        })
      )
    })
    const what = one.slice(0, 20)
    t.ok(answers < 30 * 40, `${what}: ${answers} answers`)
    t.ok(ms < maxTurnMs, `${what}: the longest turn took ${ms} ms of CPU`)
  }
  const { meanwhile, failures } = await neighbour.stop()
  t.same(failures, [])
  t.ok(meanwhile > 0, 'calls are answered meanwhile')
})

t.test('a few requests at once are answered, in their order', async (t) => {
  const gateway = await attacked(t)
  const socket = dial(Number(new URL(gateway.origin).port))
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString()))
  const list = listTools(gateway)
  socket.write(`${list}${live}`.repeat(10))
  await until('all are answered', () => text.split('HTTP/1.1 200').length === 21)
  const found = [...text.matchAll(/"status":"live"|"tools":/g)].map(([part]) => part)
  t.same(
    found,
    Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? '"tools":' : '"status":"live"'))
  )
  socket.destroy()
})
