// A connection is for a thousand requests: its client is told with the last one, and goes on with another connection.

import { Agent, request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { createConnections } from '../../src/http/sockets.ts'
import { createTurnShares } from '../../src/time/turn-shares.ts'
import { acmeGateway } from '../kit/acme-gateway.ts'

t.test('a client that keeps its connection alive notices nothing but a new one', async (t) => {
  const acme = await acmeGateway(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const sockets: Socket[] = []
  const last: number[] = []
  for (let n = 1; n <= 1_002; n++) {
    const outgoing = request(`${acme.publicUrl}/health/live`, { agent }).end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const { socket } = response
    if (!sockets.includes(socket)) sockets.push(socket)
    if (response.statusCode !== 200) t.fail(`${n}: ${response.statusCode}`)
    if (response.headers.connection === 'close') last.push(n)
    await once(response.resume(), 'close')
  }
  t.same(last, [1_000])
  t.equal(sockets.length, 2)
  t.ok(sockets[0]?.destroyed)
})

t.test('strangers pay for new connections, and no tenant that had work before', (t) => {
  let ms = 0
  const shares = createTurnShares(() => ms)
  const connections = createConnections(1_024, 100_000_000, pino({ enabled: false }), shares)
  shares.note('acme')
  shares.note('globex')
  shares.begin('acme')
  ms += 0.3
  const socket = new Socket()
  connections.opened(socket)
  ms += 0.6
  t.same(['acme', ''].map(shares.has), [true, false])
  socket.destroy()
  t.end()
})
