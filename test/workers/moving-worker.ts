// A worker without a gateway: it answers at once and says who it is. The path of a request names the worker that has
// its session: `/2`. Each connection that it gives away is a line of standard output.

import cluster from 'node:cluster'
import { createServer } from 'node:http'
import { serveDirectly } from '../../src/http/direct/direct-connections.ts'
import type { RequestTurns } from '../../src/http/request-turns.ts'
import { openChannel } from '../../src/workers/channel.ts'
import { createConnectionMoves } from '../../src/workers/connection-moves.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { endWithPrimary } from '../../src/workers/worker-end.ts'

const node = String(cluster.worker?.id)
const server = createServer()
const channel = openChannel<ToWorker, ToPrimary>(process)
endWithPrimary()
const { sendSocket } = channel
channel.sendSocket = (...args) => {
  console.log(`given ${node}`)
  sendSocket(...args)
}
serveDirectly(server, {
  keepAliveTimeout: 60_000,
  headersTimeout: 60_000,
  maxRequestsPerSocket: 1_000,
  turns: { add: ({ begin }: { begin(): void }) => (begin(), false) } as unknown as RequestTurns,
  moves: createConnectionMoves(channel, node),
  isOpen: () => server.listening,
  accepts: () => true,
  serve({ url = '' }, reply) {
    const home = url.slice(1)
    if (home !== node) reply.home = home
    reply.writeHead(200, { 'Content-Length': 1 }).end(node)
  },
  refuse: () => {},
  silent: (socket) => socket.destroy()
})
server.listen(0, '127.0.0.1')
