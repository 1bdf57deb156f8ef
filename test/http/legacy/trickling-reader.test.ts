// A client that takes a little of its answer now and then makes progress for ever, and the answer waits in memory.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { fasterServerTimeouts } from '../../kit/faster-sockets.ts'
import { dial } from '../../kit/raw-http.ts'
import { until } from '../../kit/until.ts'

t.test('one that reads too slowly is closed in the end, one that reads gets everything', async (t) => {
  // No test waits for minutes: what is asked for in seconds takes hundredths.
  const asked: number[] = []
  const { timeout } = AbortSignal
  AbortSignal.timeout = (ms) => {
    asked.push(ms)
    return timeout.call(AbortSignal, Math.ceil(ms / 100))
  }
  t.teardown(() => {
    AbortSignal.timeout = timeout
  })
  const { connections } = fasterServerTimeouts(t)
  const acme = await acmeGateway(t)
  const ada = await legacyClient(acme.url(), keyOf.ada)
  const params = { name: 'big', arguments: { bytes: 14_000_000 } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'big', method: 'tools/call', params })
  const socket = dial(acme.port).pause()
  t.teardown(() => socket.destroy())
  socket.write(acme.post(body, `Mcp-Session-Id: ${ada.sessionId}\r\n`).replace('Connection: close\r\n', ''))
  const end = await until('it is connected', () => connections.get(socket.localPort))
  let taken = 0
  await until('it is closed', () => {
    taken += (socket.read(1_024) as Buffer | null)?.length ?? 0
    return end.destroyed
  })
  t.ok(taken > 0 && taken < 14_000_000, `it had taken ${taken} bytes`)
  t.ok(
    asked.some((ms) => ms > 60_000 && ms < 300_000),
    'after a time that fits what waited'
  )
  AbortSignal.timeout = timeout
  const { json } = await ada.request('tools/call', params)
  t.equal(json.result.content[0].text.length, 14_000_000)
})
