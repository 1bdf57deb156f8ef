// A connection on its way to another worker is not read; where the other one does not take it, it is read on.

import { once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { serveDirectly } from '../../../src/http/direct/direct-connections.ts'
import type { RequestTurns } from '../../../src/http/request-turns.ts'
import { listen } from '../../kit/listen.ts'
import { dial, untilClosed } from '../../kit/raw-http.ts'

/** A server whose requests are for sessions of another worker: their path names it. */
async function start(t: Test) {
  const server = createServer()
  const given: Array<PromiseWithResolvers<boolean | undefined> & { readonly moves: number; readonly to: string }> = []
  const asked = new EventTarget()
  const { closeAll } = serveDirectly(server, {
    keepAliveTimeout: 60_000,
    headersTimeout: 60_000,
    maxRequestsPerSocket: 1_000,
    turns: { add: ({ begin }: { begin(): void }) => (begin(), false) } as unknown as RequestTurns,
    moves: {
      mayGive: (to) => to !== '/gone',
      give(to, _handle, { moves }) {
        const move = { ...Promise.withResolvers<boolean | undefined>(), to, moves }
        given.push(move)
        asked.dispatchEvent(new Event('given'))
        return move.promise
      },
      serve: () => {}
    },
    isOpen: () => true,
    accepts: () => true,
    serve({ url = '' }, reply) {
      if (url !== '/here') reply.home = url
      reply.writeHead(200, { 'Content-Length': '2' }).end('ok')
    },
    refuse: () => {},
    silent: (socket) => socket.destroy()
  })
  const socket = dial(Number(new URL(await listen(t, server)).port))
  t.teardown(() => socket.destroy())
  const closed = untilClosed(socket)
  const send = (path: string): unknown =>
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
  /** Each is answered before the next one is sent. */
  async function ask(...paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const answer = once(socket, 'data')
      send(path)
      await answer
    }
  }
  async function nextMove() {
    if (given.length === 0) await once(asked, 'given')
    const move = given.shift()
    if (move === undefined) throw new Error('no move')
    return move
  }
  return { socket, send, ask, closed, nextMove, given, closeAll }
}

t.test('two requests in a row for sessions of one other worker move their connection', async (t) => {
  const { ask, nextMove, given, closed } = await start(t)
  await ask('/a', '/b', '/a', '/here', '/a', '/b', '/gone', '/gone')
  // The control: in the turn after the last answer it would have moved.
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  t.same(given, [])
  await ask('/a', '/a')
  const { to, moves, resolve } = await nextMove()
  t.match({ to, moves }, { to: '/a', moves: 1 })
  resolve(true)
  await closed
})

t.test('a connection that the other worker does not take is read on, and tried four times in all', async (t) => {
  const { socket, send, ask, nextMove, given } = await start(t)
  await ask('/a')
  for (let moves = 1; moves <= 4; moves++) {
    await ask('/a')
    const move = await nextMove()
    t.equal(move.moves, moves)
    send('/a')
    const answer = once(socket, 'data')
    let isRead = false
    void answer.then(() => {
      isRead = true
    })
    for (let n = 0; n < 20; n++)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    t.notOk(isRead, 'what comes meanwhile stays in the system')
    move.resolve(false)
    t.match(String((await answer)[0]), /^HTTP\/1\.1 200 /, 'and is answered')
  }
  await ask('/a', '/a', '/a')
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  t.same(given, [])
})

t.test('a connection of which nobody knows who has it is ended', async (t) => {
  const { socket, ask, nextMove, closed } = await start(t)
  await ask('/a', '/a')
  const ended = once(socket, 'end')
  ;(await nextMove()).resolve(undefined)
  await ended
  await closed
})

t.test('a connection on its way is closed with all others, and not served again', async (t) => {
  const { ask, nextMove, closed, closeAll } = await start(t)
  await ask('/a', '/a')
  const { resolve } = await nextMove()
  closeAll()
  resolve(false)
  await closed
})
