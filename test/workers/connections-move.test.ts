// A connection goes to the worker that has the session of its requests, with every byte that its client has sent.

import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import t, { type Test } from 'tap'
import { descendants } from '../e2e/kit/process.ts'
import { initializeBody } from '../kit/acme-gateway.ts'
import { key } from '../kit/gateway.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { marked } from '../kit/process.ts'
import { dial, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { type Workers, workers } from './kit.ts'

/** Each session has a process of its own, at its home. */
const upstreams = {
  small: { type: 'stdio', command: 'sh', args: [new URL('../kit/small-server.sh', import.meta.url).pathname] }
}
const start = (t: Test): Promise<Workers> =>
  workers(t, { upstreams, endpoints: { default: { upstreams: ['small'], prefix: '' } } })

const callBody = (id: number): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'pid', arguments: {} } })

interface Answered {
  readonly response: IncomingMessage
  readonly text: string
  /** That ran it. */
  readonly worker: number
}

/** One connection. */
interface Client {
  /** A call of a session. */
  call(session: string): Promise<Answered>
  open(): Promise<{ readonly session: string; readonly worker: number }>
  /** The worker that has the connection: it runs a request without a session itself. */
  where(): Promise<number>
  /** How many connections it has used. */
  readonly connections: number
}

function connection(t: Test, { mcp, logged }: Workers): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ports = new Set<number | undefined>()
  let id = 0
  async function post(body: string, headers: object): Promise<Answered> {
    const outgoing = request(mcp, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
        'content-length': Buffer.byteLength(body)
      }
    }).end(body)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    ports.add(outgoing.socket?.localPort)
    const text = (await response.setEncoding('utf8').toArray()).join('')
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
    const requestId = response.headers['x-request-id']
    const line = await logged(`the request ${String(requestId)}`, (each) => each['requestId'] === requestId)
    return { response, text, worker: Number(line['worker']) }
  }
  return {
    call: (session) => post(callBody(++id), { 'mcp-session-id': session }),
    async open() {
      const { response, worker } = await post(initializeBody('2025-06-18'), {})
      return { session: String(response.headers['mcp-session-id']), worker }
    },
    async where() {
      const { headers, body } = modernMessage('server/discover')
      return (await post(body, headers)).worker
    },
    get connections() {
      return ports.size
    }
  }
}

/** A connection that the system gave to another worker than this one. */
async function connectionBeside(t: Test, served: Workers, worker: number): Promise<Client> {
  return await until('the other worker gets a connection', async () => {
    const client = connection(t, served)
    return (await client.where()) === worker ? undefined : client
  })
}

/** Calls until the connection is where the session is. */
async function settle(client: Client, session: string, home: number): Promise<void> {
  await until('the connection moves', async () => {
    for (let n = 0; n < 2; n++) await client.call(session)
    return (await client.where()) === home
  })
}

t.test('a connection goes to the worker that has its session, after two calls in a row', async (t) => {
  const served = await start(t)
  const { session, worker: home } = await connection(t, served).open()
  const client = await connectionBeside(t, served, home)
  const away = await client.where()
  for (let n = 0; n < 3; n++) {
    t.equal((await client.call(session)).worker, home, 'the home runs the call')
    t.equal(await client.where(), away, 'after one call the connection is where it was')
  }
  await settle(client, session, home)
  t.equal((await client.call(session)).worker, home)
  t.equal(client.connections, 1, 'all of it was one connection')
  t.equal((await served.stop()).code, 0, 'a connection that has moved holds up no stop')
})

t.test('where sessions of several workers take turns, the connection stays; it moves four times at most', async (t) => {
  const served = await start(t)
  const first = await connection(t, served).open()
  const second = await (await connectionBeside(t, served, first.worker)).open()
  t.not(first.worker, second.worker)
  const client = connection(t, served)
  const began = await client.where()
  for (let n = 0; n < 10; n++) for (const { session } of [first, second]) await client.call(session)
  t.equal(await client.where(), began, 'by turns')
  const [here, there] = first.worker === began ? [first, second] : [second, first]
  for (const { session, worker } of [there, here, there, here]) await settle(client, session, worker)
  for (let n = 0; n < 5; n++) await client.call(there.session)
  t.equal(await client.where(), began, 'a fifth time it does not move')
  t.equal(client.connections, 1)
})

/** A request as bytes. */
function bytesOf({ url }: Workers, session: string, id: number, isLast: boolean): string {
  const body = callBody(id)
  return (
    `POST /t/acme/mcp HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${session}\r\n` +
    `${isLast ? 'Connection: close\r\n' : ''}Content-Length: ${body.length}\r\n\r\n${body}`
  )
}

const idsIn = (text: string): number[] =>
  [...text.matchAll(/"id":(\d+),"(?:result|error)"/g)].map(([, id]) => Number(id))

interface Talk {
  readonly sent: number
  readonly answered: readonly number[]
}

/**
 * Sends each request as soon as the one before is answered, in two parts, so that it comes while the connection moves.
 * @param options `ahead`: how many requests are sent at once; `onAnswer`: called for each part of an answer
 */
async function talk(
  served: Workers,
  sessions: readonly string[],
  requests: number,
  { ahead = 1, onAnswer = () => {} } = {}
): Promise<Talk> {
  const socket = dial(Number(new URL(served.url).port)).setNoDelay()
  let [sent, text] = [0, '']
  const sendNext = (): void => {
    const from = sent
    sent = Math.min(sent + ahead, requests)
    // Blocks of three: in each the connection moves once.
    const next = Array.from({ length: sent - from }, (_, at) => {
      const session = sessions[Math.floor((from + at) / 3) % sessions.length] ?? ''
      return bytesOf(served, session, from + at, from + at === requests - 1)
    }).join('')
    const cut = (from * 37) % next.length
    socket.write(next.slice(0, cut))
    setImmediate(() => socket.write(next.slice(cut)))
  }
  socket.on('data', (part: string | Buffer) => {
    text += String(part)
    onAnswer()
    if (idsIn(text).length === sent && sent < requests) sendNext()
  })
  sendNext()
  return { answered: idsIn(await untilClosed(socket)), sent }
}

t.test('what a client sends while its connection moves is answered, in order, wherever it is cut', async (t) => {
  const served = await start(t)
  const first = await connection(t, served).open()
  const second = await (await connectionBeside(t, served, first.worker)).open()
  const sessions = [first.session, second.session]
  const talks = Array.from({ length: 8 }, (_, n) => talk(served, sessions, 24, { ahead: n % 4 === 3 ? 2 : 1 }))
  const all = Array.from({ length: 24 }, (_, id) => id)
  for (const { answered } of await Promise.all(talks)) t.same(answered, all)
})

t.test('a worker that is killed while connections move to it takes none of them along unread', async (t) => {
  const served = await start(t)
  const first = await connection(t, served).open()
  const second = await (await connectionBeside(t, served, first.worker)).open()
  const sessions = [first.session, second.session]
  let answers = 0
  const onAnswer = (): void => void answers++
  // Every third stays with the first worker: else all could be at the other one when it stops.
  const talks = Array.from({ length: 16 }, (_, n) =>
    talk(served, n % 3 === 0 ? [first.session] : sessions, 36, { onAnswer })
  )
  const all = descendants(served.pid)
  const pid = (await marked(`NODE_UNIQUE_ID=${second.worker}`)).find((each) => all.includes(each)) ?? 0
  process.kill(pid, 'SIGSTOP')
  // What is sent to it from now on it does not take, and sooner or later each client waits for it.
  let [before, looks] = [answers, 0]
  await until('nothing more is answered', () => {
    looks = answers === before ? looks + 1 : 0
    before = answers
    return looks === 10
  })
  process.kill(pid, 'SIGKILL')
  // Resolves where the last request was answered, or the connection was closed.
  const ends = await Promise.all(talks)
  for (const { answered, sent } of ends)
    t.ok(answered.length >= sent - 1, `${answered.length} of ${sent} answered, then closed`)
  t.ok(
    ends.some(({ answered }) => answered.length === 36),
    'those of the other worker go on'
  )
})
