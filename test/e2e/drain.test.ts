// The end of the gateway process under load: every call that it took is answered, and no child process outlives it.

import t, { type Test } from 'tap'
import { Agent, request } from 'node:http'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { readFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { jsonHeaders, legacyClient, eventsOf, open, type LegacyClient } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { canaryServer, stdioCanaryServer } from '../kit/canary-server.ts'
import { postEvents, type EventStream } from '../kit/events.ts'
import { marked, serve, start } from '../kit/process.ts'
import { until } from '../kit/until.ts'
import { isMethod } from '../kit/upstream.ts'
import { signalAll } from './kit/process.ts'

interface Attempt {
  readonly canary: string
  /**
   * `unreachable`: no connection. `reset`: the connection broke before an answer began. `cut`: it broke within the
   * answer.
   */
  readonly outcome: 'result' | 'shutting_down' | 'unreachable' | 'reset' | 'cut' | 'something else'
  readonly detail?: unknown
}

const stdioServer = new URL('../kit/stdio-server.ts', import.meta.url).pathname
/** Ignores the end of its input and TERM, and has a child of its own. */
const stubborn = {
  command: 'sh',
  args: ['-c', 'sleep 1000 & exec "$0" "$@"', process.execPath, stdioServer, JSON.stringify({ stubborn: true })]
}

let lastCall = 0

/** One call on a connection of the agent, or on one of its own; never rejects. */
function attempt(url: string, client: LegacyClient, tool: string, args: object, agent?: Agent): Promise<Attempt> {
  const canary = `canary ${++lastCall} of ${tool}`
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: canary,
    method: 'tools/call',
    params: { name: tool, arguments: { canary, ...args }, _meta: { progressToken: 1 } }
  })
  return new Promise((resolve) => {
    const done = (outcome: Attempt['outcome'], detail?: unknown): void => resolve({ canary, outcome, detail })
    const outgoing = request(
      url,
      { method: 'POST', headers: { ...client.headers, ...jsonHeaders }, agent: agent ?? false },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('error', () => {}) // Its close says the same.
        response.on('close', () => {
          if (!response.complete) return done('cut', text)
          const messages =
            response.headers['content-type']?.startsWith('text/event-stream') === true
              ? eventsOf(text)
              : [JSON.parse(text) as unknown]
          const final = messages.at(-1) as {
            result?: { content: Array<{ text: string }> }
            error?: { data: { reason: string } }
          }
          if (final.result?.content[0]?.text === canary) done('result')
          else done(final.error?.data.reason === 'shutting_down' ? 'shutting_down' : 'something else', final)
        })
      }
    )
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      done(error.code === 'ECONNREFUSED' ? 'unreachable' : 'reset', error.code)
    )
    outgoing.end(body)
  })
}

/** Opens a GET stream. `clean` resolves, when it is over, with whether it ended as HTTP says it should. */
async function stream(url: string, client: LegacyClient): Promise<{ readonly clean: Promise<boolean> }> {
  const response = await open(url, { method: 'GET', headers: { ...client.headers, accept: 'text/event-stream' } })
  response.resume().on('error', () => {}) // Its close says the same.
  return { clean: once(response, 'close').then(() => response.complete) }
}

/** For the environment of child processes. What is left of them when a test fails goes with the test. */
function mark(t: Test): string {
  const text = `GATEHOUSE_TEST_${randomUUID()}`
  t.teardown(async () => signalAll(await marked(text), 'SIGKILL'))
  return text
}

async function gone(t: Test, text: string): Promise<void> {
  await until('no child process', async () => (await marked(text)).length === 0)
  t.pass('no child process is left')
}

t.test('TERM under load: every call that was taken is answered, streams end, the process exits with 0', async (t) => {
  const web = await canaryServer(t)
  const own = mark(t)
  const drainMs = 60_000
  const started = await serve(
    t,
    configOf({
      upstreams: {
        web: { url: web.url },
        local: { ...stdioCanaryServer, env: { MARK: own, MIRROR_JOURNAL: 'journal' } }
      },
      limits: { drainMs, coldStartMs: 30_000 },
      top: { logLevel: 'warn' }
    })
  )
  const url = `${started.url}/t/acme/mcp`
  const clients = await Promise.all(Array.from({ length: 5 }, () => legacyClient(url, key)))
  const streams = await Promise.all(clients.map((client) => stream(url, client)))
  // Every client's own process is there before the load begins.
  for (const { outcome } of await Promise.all(clients.map((client) => attempt(url, client, 'local__mirror', {}))))
    t.equal(outcome, 'result')
  t.ok((await marked(own)).length > clients.length, 'child processes are there')

  const before: Array<Promise<Attempt>> = []
  const after: Array<Promise<Attempt>> = []
  let signalled = false
  let flying = 0
  const loads: Array<[tool: string, args: object]> = [
    ['web__mirror', {}],
    ['web__mirror', { delayMs: 1_500 }],
    ['web__mirror', { delayMs: 1_500, steps: 30 }],
    ['local__mirror', {}],
    ['local__mirror', { delayMs: 1_500 }],
    ['local__mirror', { delayMs: 1_500, steps: 30 }]
  ]
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const load = Promise.all(
    clients.flatMap((client) =>
      loads.flatMap(([tool, args]) =>
        [agent, undefined].map(async (used) => {
          for (;;) {
            const sent = attempt(url, client, tool, args, used)
            const book = signalled ? after : before
            book.push(sent)
            flying++
            const { outcome } = await sent
            flying--
            if (outcome === 'unreachable') return
          }
        })
      )
    )
  )
  await until('load', () => web.executed.size > 200 && before.length > 400)
  t.ok(flying > clients.length * loads.length, `calls are in flight: ${flying}`)

  signalled = true
  const signalledAt = performance.now()
  started.signal('SIGTERM')
  const exit = await started.ended
  const tookMs = performance.now() - signalledAt
  await load

  t.same(exit, { code: 0, signal: null })
  t.ok(tookMs < drainMs, `it does not wait longer than its calls do (${Math.round(tookMs)} ms)`)
  const earlier = await Promise.all(before)
  const later = await Promise.all(after)
  const executed = new Set([
    ...web.executed.keys(),
    ...(await readFile(join(started.folder, 'journal'), 'utf8')).split('\n')
  ])
  const cutOff = earlier
    .concat(later)
    .filter(
      ({ canary, outcome }) =>
        outcome === 'cut' || outcome === 'something else' || (executed.has(canary) && outcome !== 'result')
    )
  t.same(cutOff, [], 'nothing that an upstream executed goes without its answer, and no answer is broken off')
  // What lay unread in a socket when the process closed it was never taken; the next process can have it.
  const untaken = earlier.filter(({ outcome }) => outcome !== 'result')
  t.ok(untaken.every(({ outcome }) => outcome === 'shutting_down' || outcome === 'reset'))
  t.ok(
    untaken.length < clients.length * loads.length,
    `nearly all that was sent before is done (not: ${untaken.length} of ${earlier.length})`
  )
  t.ok(earlier.filter(({ outcome }) => outcome === 'result').length > 200)
  t.ok(
    later.some(({ outcome }) => outcome === 'unreachable'),
    'new connections are refused'
  )
  t.same(
    await Promise.all(streams.map(({ clean }) => clean)),
    clients.map(() => true),
    'GET streams end cleanly'
  )
  await gone(t, own)
})

t.test('after TERM a gateway is not ready at once, and serves on: no request is lost', async (t) => {
  const web = await canaryServer(t)
  const started = await serve(
    t,
    // Longer than any machine needs for what follows; nobody waits for its end.
    configOf({ upstreams: { web: { url: web.url } }, limits: { readyDelayMs: 600_000 }, top: { logLevel: 'warn' } })
  )
  const url = `${started.url}/t/acme/mcp`
  const readiness = async (): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${started.url}/health/ready`)
    return { status: answer.status, body: await answer.json() }
  }
  const clients = await Promise.all(Array.from({ length: 4 }, () => legacyClient(url, key)))
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  t.equal((await readiness()).status, 200)

  // As a load balancer does, they stop when they hear of it.
  const unready = new AbortController()
  const sent: Attempt[] = []
  const balanced = clients.flatMap((client) =>
    [agent, undefined].map(async (used) => {
      while (!unready.signal.aborted) sent.push(await attempt(url, client, 'web__mirror', { delayMs: 20 }, used))
    })
  )
  await until('load', () => sent.length > 40)
  started.signal('SIGTERM')
  t.match(
    await until('readiness says no', async () => {
      const answer = await readiness()
      return answer.status !== 200 && answer
    }),
    { status: 503, body: { reason: 'stopping' } }
  )
  const reply = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: '{}' })
  t.equal(reply.headers.get('connection'), 'close', 'no proxy sends another request on the connection')
  const late = await legacyClient(url, key)
  t.equal((await attempt(url, late, 'web__mirror', {})).outcome, 'result', 'a session that is opened now is served')
  unready.abort()
  await Promise.all(balanced)
  t.same(
    sent.filter(({ outcome }) => outcome !== 'result'),
    []
  )
})

t.test('the port is open for readyDelayMs, and calls that are in flight then end as they would', async (t) => {
  const web = await canaryServer(t)
  const started = await serve(
    t,
    configOf({
      upstreams: { web: { url: web.url } },
      limits: { readyDelayMs: 2_000, drainMs: 120_000 },
      top: { logLevel: 'warn' }
    })
  )
  const url = `${started.url}/t/acme/mcp`
  const [listener, heedless, patient] = await Promise.all([1, 2, 3].map(() => legacyClient(url, key)))
  const listening = await stream(url, listener as LegacyClient)
  const long = attempt(url, patient as LegacyClient, 'web__hold', {})
  await until('a call that takes long', () => web.held().length === 1)
  const signalledAt = performance.now()
  started.signal('SIGTERM')
  // Whoever does not look at readiness.
  const sent: Attempt[] = []
  do sent.push(await attempt(url, heedless as LegacyClient, 'web__mirror', {}))
  while (sent.at(-1)?.outcome === 'result')
  t.ok(performance.now() - signalledAt > 1_900, 'the port was open as long as it was said')
  // It may have been on its way into the closing port, or behind it when that closed; nothing was executed.
  t.match(sent.at(-1)?.outcome, /^(?:unreachable|reset|shutting_down)$/)
  t.notOk(web.executed.has(String(sent.at(-1)?.canary)))
  web.release()
  t.equal((await long).outcome, 'result', 'a call that was in flight all the time ends after the delay')
  t.equal(await listening.clean, true)
  t.same(await started.ended, { code: 0, signal: null })
})

t.test('a second TERM does not wait for load balancers', async (t) => {
  const started = await serve(
    t,
    configOf({ upstreams: { web: { url: 'http://127.0.0.1:9/mcp' } }, limits: { readyDelayMs: 600_000 } })
  )
  started.signal('SIGTERM')
  await until('not ready', async () => (await fetch(`${started.url}/health/ready`)).status === 503)
  started.signal('SIGINT')
  t.same(await started.ended, { code: 130, signal: null })
})

t.test('calls that take longer than drainMs end with an error that says that their outcome is unknown', async (t) => {
  const web = await canaryServer(t)
  const late = await canaryServer(t)
  const own = mark(t)
  const drainMs = 500
  const started = await serve(
    t,
    configOf({
      upstreams: {
        web: { url: web.url },
        // Longer than any machine needs for what follows.
        late: { url: late.url, connectMs: 600_000 },
        local: { ...stdioCanaryServer, env: { MARK: own, MIRROR_JOURNAL: 'journal' } },
        stubborn: { ...stubborn, env: { MARK: own } }
      },
      limits: { drainMs, coldStartMs: 30_000 },
      top: { logLevel: 'warn' }
    })
  )
  const url = `${started.url}/t/acme/mcp`
  const client = await legacyClient(url, key)
  // From here on the server named late takes connections and says nothing.
  late.override(isMethod('initialize'), () => {}, Infinity)

  const paramsOf = (name: string, args: object) => ({
    name,
    arguments: { canary: name, ...args },
    _meta: { progressToken: 1 }
  })
  /** A call of which something has arrived. */
  async function begun(name: string, args: object): Promise<EventStream> {
    const stream = await postEvents(url, client, name, 'tools/call', paramsOf(name, args))
    await stream.next('progress', ({ method }) => method === 'notifications/progress')
    return stream
  }
  const call = (name: string) => client.request('tools/call', paramsOf(name, {}))
  const streams = {
    'a stream over HTTP': await begun('web__mirror', { delayMs: 600_000, steps: 6_000 }),
    'a stream over stdio': await begun('local__mirror', { delayMs: 600_000, steps: 6_000 }),
    'a process that does not want to end': await begun('stubborn__slow', {})
  }
  const calls = { 'JSON over HTTP': call('web__hold'), 'JSON over stdio': call('local__hold') }
  const connecting = call('late__mirror')
  const journal = () => readFile(join(started.folder, 'journal'), 'utf8').catch(() => '')
  await until(
    'calls at their upstreams',
    async () =>
      web.held().length === 1 &&
      late.seen.filter(isMethod('initialize')).length === 2 &&
      (await journal()).includes('local__hold')
  )
  t.ok((await marked(own)).length > 2, 'child processes are there')

  const signalledAt = performance.now()
  started.signal('SIGTERM')
  const error = { code: 503, data: { reason: 'shutting_down', outcome: 'unknown' } }
  for (const [what, answer] of Object.entries(calls)) {
    const { status, json } = await answer
    t.equal(status, 200, what)
    t.match(json.error, error, what)
  }
  for (const [what, stream] of Object.entries(streams)) {
    await stream.ended
    t.equal(stream.status, 200, what)
    t.match(stream.messages().at(-1), { error }, what)
  }
  t.match(
    (await connecting).json.error,
    { code: 503, data: { reason: 'shutting_down' } },
    'a call that still waits for its connection'
  )
  t.ok(performance.now() - signalledAt < drainMs + 60_000, 'they are answered when the drain time is over')
  t.same(await started.ended, { code: 0, signal: null })
  await until('the upstream was told', () => web.cancelled.includes('web__hold'))
  // The stubborn process gets its graces: end of input, TERM, KILL.
  t.ok(performance.now() - signalledAt < drainMs + 90_000, 'it exits in time')
  await gone(t, own)
})

t.test('a second TERM exits at once and leaves no child process', async (t) => {
  const own = mark(t)
  const started = await serve(
    t,
    configOf({
      upstreams: { stubborn: { ...stubborn, env: { MARK: own } } },
      // Longer than this test may take: what waits for the call does not come to its end.
      limits: { drainMs: 3_600_000, coldStartMs: 30_000 }
    })
  )
  const client = await legacyClient(`${started.url}/t/acme/mcp`, key)
  const call = client.request('tools/call', { name: 'stubborn__slow', arguments: {} }).catch((error: unknown) => error)
  await until('two processes and their children', async () => (await marked(own)).length === 4)
  started.signal('SIGTERM')
  await until('the drain', () => started.log().some(({ msg }) => String(msg).startsWith('stopping')))
  t.equal(await Promise.race([started.ended, Promise.resolve(undefined)]), undefined, 'it waits for the call')
  started.signal('SIGTERM')
  t.match(await started.ended, { code: 130 })
  t.ok((await call) instanceof Error, 'the call is cut off: that is what the second signal means')
  await gone(t, own)
})

t.test('TERM during the start exits with 0', async (t) => {
  const config = (store: string) => configOf({ upstreams: { web: { url: 'http://127.0.0.1:9/mcp' } }, store })

  await t.test('while the store does not answer', async (t) => {
    // Takes connections and never answers, as a frozen Redis does.
    const silent = createServer((socket) => {
      t.teardown(() => socket.destroy())
    }).listen(0, '127.0.0.1')
    t.teardown(() => silent.close())
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    // It sends the signal itself, once it is connected: a second later it would go on without its store.
    const tell = [
      'import { subscribe } from "node:diagnostics_channel"; let told = false',
      'subscribe("net.client.socket", ({ socket }) => socket.once("connect", () => {',
      `if (told || socket.remotePort !== ${port}) return`,
      'told = true; console.error("is connected"); process.kill(process.pid, "SIGTERM")',
      '}))'
    ].join('\n')
    const started = await start(t, config(`redis://127.0.0.1:${port}`), {
      env: {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}`
      }
    })
    t.same(await started.ended, { code: 0, signal: null })
    t.ok(started.stderr.some((line) => line.includes('is connected')))
    t.notOk(started.log().some(({ msg }) => msg === 'listening'))
  })

  await t.test('while the modules load', async (t) => {
    // It sends the signal itself: whoever watches it may see too late that its launcher hears it.
    const tell = [
      'process.on("newListener", (name) => {',
      'if (name === "SIGTERM") queueMicrotask(() => { console.error("hears TERM"); process.kill(process.pid, name) })',
      '})'
    ].join(' ')
    const started = await start(t, config('memory:'), {
      env: {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}`
      }
    })
    t.same(await started.ended, { code: 0, signal: null })
    t.ok(started.stderr.some((line) => line.includes('hears TERM')))
    t.equal(started.log().length, 0, 'it had not begun')
  })
})

// Nothing in the gateway runs after KILL. The kernel closes the pipes, and a server that ends with its input, as MCP
// asks of it, ends. One that does not lives on: against that only the container helps, whose end is the end of all its
// processes.
t.test('KILL to the gateway: children that end with their input are gone', async (t) => {
  const own = mark(t)
  const started = await serve(
    t,
    configOf({ upstreams: { local: { ...stdioCanaryServer, env: { MARK: own } } }, limits: { coldStartMs: 30_000 } })
  )
  const client = await legacyClient(`${started.url}/t/acme/mcp`, key)
  t.equal(
    (await client.request('tools/call', { name: 'local__mirror', arguments: { canary: 'x' } })).json.result.content[0]
      .text,
    'x'
  )
  t.equal((await marked(own)).length, 2)
  started.signal('SIGKILL')
  t.same(await started.ended, { code: null, signal: 'SIGKILL' })
  await gone(t, own)
})
