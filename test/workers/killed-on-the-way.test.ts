// Connections are on their way to a worker that hangs, and is killed: it has read nothing of them. Whoever gave them away
// goes on. Where it goes on itself, it takes none of those that were closed meanwhile.

import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { openChannel } from '../../src/workers/channel.ts'
import { createConnectionRelay } from '../../src/workers/connection-relay.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { closeWithProcess } from '../../src/workers/worker-end.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

cluster.setupPrimary({
  exec: new URL('moving-worker.ts', import.meta.url).pathname,
  stdio: ['ignore', 'ignore', 'inherit', 'ipc']
})
const relay = createConnectionRelay()
/** Sockets that were sent to a worker, by its number. */
const sent = new Map<number, number>()

async function start(): Promise<{ readonly worker: Worker; readonly port: number }> {
  const worker = cluster.fork()
  closeWithProcess(worker)
  const channel = openChannel<ToPrimary, ToWorker>(worker)
  const { sendSocket } = channel
  channel.sendSocket = (...args) => {
    sent.set(worker.id, (sent.get(worker.id) ?? 0) + 1)
    sendSocket(...args)
  }
  relay.serve(channel)
  const [{ port }] = (await once(worker, 'listening')) as [{ port: number }]
  return { worker, port }
}

interface Connection {
  readonly socket: Socket
  /** @returns who answers a request for a session of this worker */
  ask(home: number): Promise<string>
}

function connection(port: number): Connection {
  const socket = dial(port)
  t.teardown(() => socket.destroy())
  return {
    socket,
    async ask(home) {
      socket.write(`POST /${home} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      return answer.toString().slice(-1)
    }
  }
}

t.test('what was sent on connections that a killed worker has not taken is answered', async (t) => {
  const [{ port }, { worker }] = [await start(), await start()]
  t.teardown(() => {
    for (const each of Object.values(cluster.workers ?? {})) each?.process.kill('SIGKILL')
  })
  const all = Array.from({ length: 24 }, () => connection(port))
  const first = await Promise.all(all.map(async (each) => ((await each.ask(1)) === '1' ? each : undefined)))
  const [control, ...more] = first.filter((each) => each !== undefined)
  const atFirst = more.slice(0, 8)
  if (control === undefined) throw new Error('the first worker got no connection')
  t.ok(atFirst.length > 0, `${atFirst.length} connections at the first worker`)
  await until('the control goes to the other one', async () => (await control.ask(2)) === '2')

  const before = sent.get(worker.id) ?? 0
  worker.process.kill('SIGSTOP')
  await Promise.all(atFirst.map(async ({ ask }) => t.same([await ask(2), await ask(2)], ['1', '1'])))
  await until('they are on their way', () => (sent.get(worker.id) ?? 0) === before + atFirst.length)
  const answers = atFirst.map(({ ask }) => ask(2))
  const closed = once(control.socket, 'close')
  worker.process.kill('SIGKILL')
  t.same(new Set(await Promise.all(answers)), new Set(['1']))
  await closed
  t.equal(await connection(port).ask(1), '1', 'and new connections come to the one that lives')
})

t.test('a connection that a killed worker was given and has not taken is closed', async (t) => {
  const [{ port }, { worker }] = [await start(), await start()]
  t.teardown(() => {
    for (const each of Object.values(cluster.workers ?? {})) each?.process.kill('SIGKILL')
  })
  worker.process.kill('SIGSTOP')
  const all = Array.from({ length: 8 }, () => connection(port))
  const answered = new Set<Connection>()
  for (const each of all)
    void each.ask(1).then(
      () => answered.add(each),
      () => {} // It was closed.
    )
  await until('the others are answered', () => answered.size === all.length - 1)
  worker.process.kill('SIGKILL')
  await until('it is closed', () => all.some(({ socket }) => socket.destroyed))
  t.equal(answered.size, all.length - 1)
})

t.test('a worker that hung runs nothing of a connection that was closed meanwhile', async (t) => {
  const [giver, { worker }] = [await start(), await start()]
  const [first, second] = [giver.worker.id, worker.id]
  t.teardown(() => {
    for (const each of Object.values(cluster.workers ?? {})) each?.process.kill('SIGKILL')
  })
  const taken: boolean[] = []
  worker.on('message', (message: ToPrimary) => message.kind === 'taken' && taken.push(message.isTaken))
  /** One that the system gave to the first worker. */
  const atFirst = () =>
    until('the first worker gets a connection', async () => {
      const each = connection(giver.port)
      return (await each.ask(first)) === String(first) ? each : undefined
    })
  const [hung, control] = [await atFirst(), await atFirst()]
  const before = sent.get(second) ?? 0
  worker.process.kill('SIGSTOP')
  t.same([await hung.ask(second), await hung.ask(second)], [String(first), String(first)])
  await until('it is on its way', () => (sent.get(second) ?? 0) === before + 1)
  const closed = once(hung.socket, 'close')
  hung.socket.write(`POST /${second} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
  await closed
  worker.process.kill('SIGCONT')
  await until('it answers', () => taken.length === 1)
  t.same(taken, [false])
  await until('the control goes to it', async () => (await control.ask(second)) === String(second))
  t.equal(taken.at(-1), true)
})
