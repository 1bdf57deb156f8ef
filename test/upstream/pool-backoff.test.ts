// For whom a failed handshake counts: what a caller declares, and its failures, are its own; an unreachable server is
// down for all.

import t, { type Test } from 'tap'
import { createConnectBackoff } from '../../src/upstream/pool/connect-backoff.ts'
import { createPool } from '../../src/upstream/pool/pool.ts'
import {
  handClock,
  handshake,
  heldClock,
  httpDefinition,
  realClock,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { type HttpUpstream, type Seen, startUpstream } from '../kit/upstream.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { GatewayError } from '../../src/protocol/messages.ts'
import { type HandshakeParams, noClient } from '../../src/protocol/seams.ts'
import type { ConnectionUse } from '../../src/upstream/rpc/transport.ts'
import type { Json } from '../kit/mcp-server.ts'

const declaring: HandshakeParams = { ...handshake, capabilities: { sampling: {} } }

/** What is left alone stays so: the time of the pool stands still. */
function acquireIn(t: Test, clock = realClock) {
  const { connector, log } = testConnector({ clock })
  const pool = createPool({ connector, clock: handClock(), random: () => 0, log })
  t.teardown(() => pool.close())
  return (definition: UpstreamDefinition, scope: string, params = handshake, use?: ConnectionUse) =>
    pool.acquire(definition, scope, params, recordingEvents(), use)
}

const initializes = ({ message }: Seen): boolean => message?.['method'] === 'initialize'
const declares = (seen: Seen): boolean =>
  initializes(seen) && 'sampling' in (seen.message as { params: { capabilities: Json } }).params.capabilities

type Answer = Parameters<HttpUpstream['override']>[1]
const refusals: Record<string, Answer> = {
  'answers with 413': (response) => {
    response.writeHead(413).end('too large')
  },
  'answers with its own error': (response, { message }) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32602, message: 'of ada' } }))
  },
  'answers with 503': (response) => {
    response.writeHead(503).end()
  },
  'answers with what is none': (response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('hello')
  },
  'breaks the connection': (response) => {
    response.destroy()
  },
  'never answers': () => {}
}

for (const [what, answer] of Object.entries(refusals)) {
  t.test(`a server that ${what} to what one caller declares is left alone for that caller only`, async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    upstream.override(declares, answer, Infinity)
    const connectMs = 45_000
    const clock = heldClock(connectMs)
    const acquire = acquireIn(t, clock)
    const definition = httpDefinition(upstream.url, { transport: 'streamable', era: 'legacy' })
    const impatient = what === 'never answers' ? { ...definition, connectMs } : definition
    const failure = async (tried: UpstreamDefinition): Promise<GatewayError> =>
      await acquire(tried, 'caller:ada', declaring).then(
        () => {
          throw new Error('it was answered')
        },
        (error: GatewayError) => error
      )
    const failing = failure(impatient)
    await until(() => upstream.seen.some(declares), 'it is asked')
    clock.pass(connectMs)
    const first = await failing
    const second = await failure(definition)
    t.notMatch(first.message, /away|tried again/, 'of an upstream that is there')
    t.match(second, { code: 'upstream_unavailable', message: /tried again in 1 s/, data: { retryAfterMs: 1_000 } })
    t.ok(second.message.endsWith(` Its last error: ${first.message}`), 'it is told to whom it happened')
    t.equal(upstream.seen.filter(declares).length, 1, 'a caller that keeps trying is held back')
    t.ok(await acquire(definition, 'caller:bob'), 'others are not')
    t.ok(await acquire(definition, 'listing', handshake, 'listing'))
    await t.rejects(
      acquire(definition, 'caller:ada', declaring),
      { message: /tried again/ },
      'and it helps ada nothing that they are let in'
    )
  })
}

t.test('a process that crashes of what one caller declares is started for the others', async (t) => {
  const script = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, params } = JSON.parse(line)
    if (params?.capabilities?.sampling) process.exit(3)
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'brittle', version: '1' } } }))
  })`
  const acquire = acquireIn(t)
  const definition = stdioDefinition({}, { args: ['-e', script], era: 'legacy' })
  await t.rejects(acquire(definition, 'caller:ada', declaring), {
    code: 'upstream_unavailable',
    message: /exit code 3/
  })
  await t.rejects(acquire(definition, 'caller:ada', declaring), { message: /tried again in 1 s.*exit code 3/ })
  t.ok(await acquire(definition, 'caller:bob'))
  t.ok(await acquire(definition, 'listing', handshake, 'listing'))
})

t.test('an unreachable server counts for all callers, whichever finds out', async (t) => {
  const hung = await startUpstream({ silent: ['initialize'] })
  t.teardown(() => hung.close())
  const definitions = {
    'cannot be reached': httpDefinition('http://127.0.0.1:1/mcp'),
    'was not found': stdioDefinition({}, { command: 'no-such-command-of-gatehouse' }),
    'cannot be started': stdioDefinition({}, { args: ['\0'] })
  }
  for (const [what, definition] of Object.entries(definitions)) {
    const acquire = acquireIn(t)
    await t.rejects(acquire(definition, 'caller:ada', declaring), {
      code: 'upstream_unavailable',
      message: new RegExp(what)
    })
    await t.rejects(acquire(definition, 'caller:bob'), {
      code: 'upstream_unavailable',
      message: new RegExp(`is down. It is tried again in 1 s.*${what}`)
    })
  }
  const acquire = acquireIn(t)
  const definition = httpDefinition(hung.url, { era: 'legacy', connectMs: 300 })
  await t.rejects(acquire(definition, 'caller:ada'), { message: /did not answer/ }, 'it was declared nothing')
  await t.rejects(acquire(definition, 'caller:bob'), { message: /is down.*did not answer/ })
})

t.test('what the listing connection is refused with counts for all callers', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.override(initializes, (response) => {
    response.writeHead(503).end()
  })
  const acquire = acquireIn(t)
  const definition = httpDefinition(upstream.url, { transport: 'streamable', era: 'legacy' })
  await t.rejects(acquire(definition, 'listing', handshake, 'listing'), { message: /503/ })
  await t.rejects(acquire(definition, 'caller:bob'), { message: /is down.*503/ })
  t.equal(upstream.seen.filter(initializes).length, 1)
})

t.test(
  'a call probes an upstream that is away, one a second for all callers, and its success is that of all',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    let isAway = true
    upstream.override(
      (seen) => isAway && initializes(seen),
      (response) => {
        response.writeHead(503).end()
      },
      Infinity
    )
    const clock = handClock()
    const { connector, log } = testConnector()
    const pool = createPool({ connector, clock, random: () => 0, log })
    t.teardown(() => pool.close())
    const definition = httpDefinition(upstream.url, { transport: 'streamable', era: 'legacy' })
    const acquire = (scope: string, use?: ConnectionUse) =>
      pool.acquire(definition, scope, handshake, recordingEvents(), use)
    const attempts = (): number => upstream.seen.filter(initializes).length
    for (const wait of [1_000, 2_000, 4_000, 8_000, 16_000]) {
      await t.rejects(acquire('listing', 'listing'), { message: /503/ })
      clock.advance(wait)
    }
    await t.rejects(acquire('listing', 'listing'), {
      message: /been away for 31 s. It is tried again in 32 s, or by a call 1 s/
    })
    await t.rejects(acquire('caller:ada'), {
      code: 'upstream_unavailable',
      data: { retryAfterMs: 1_000, retriedInMs: 32_000 }
    })
    t.equal(attempts(), 6, 'too soon')

    clock.advance(1_000)
    await t.rejects(acquire('view', 'view'), { message: /is down/ }, 'a view, which nobody waits for, does not probe')
    const tried = await Promise.allSettled([acquire('caller:ada'), acquire('caller:bob')])
    t.same(
      tried.map(({ status }) => status),
      ['rejected', 'rejected']
    )
    t.equal(attempts(), 7, 'one of two')
    const heard = tried.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as GatewayError) : undefined))
    t.match(heard[0], { message: /HTTP 503/ }, 'it was the first that probed')
    for (const error of heard)
      t.match(error, { message: /been away for 32 s. It is tried again in 31 s/, data: { retriedInMs: 31_000 } })

    clock.advance(1_000)
    isAway = false
    const [ada, bob] = await Promise.all([acquire('caller:ada'), acquire('caller:bob')])
    t.not(ada, bob)
    t.ok(await acquire('listing', 'listing'), 'and the listing need not wait either')
  }
)

t.test('scopes are remembered up to a limit, those that failed last, and not for ever', async (t) => {
  const clock = handClock()
  const backoffs = createConnectBackoff(clock, () => 0, 2)
  const definition = stdioDefinition()
  const fail = (key: string): number => backoffs.failed(definition, key, new Error('refused'), false)
  const resting = (): string[] => ['a', 'b', 'c'].filter((key) => backoffs.refusal(definition, key, true) !== undefined)
  fail('a')
  fail('b')
  t.same(resting(), ['a', 'b'])
  fail('a')
  fail('c')
  t.same(resting(), ['a', 'c'])
  clock.advance(1_000)
  t.same(resting(), [])
  t.equal(fail('a'), 2)
  clock.advance(2_000 + 120_001)
  backoffs.sweep()
  t.equal(fail('a'), 1)
})

t.test('that a connection is open proves nothing while its server cannot be reached', async (t) => {
  const upstream = await startUpstream()
  const clock = handClock()
  const { connector, log } = testConnector()
  const pool = createPool({ connector, clock, random: () => 0, log })
  t.teardown(() => pool.close())
  const definition = httpDefinition(upstream.url, {
    hash: 'a',
    transport: 'streamable',
    era: 'legacy',
    idleMs: 600_000
  })
  const connection = await pool.acquire(definition, 'caller:ada', handshake, recordingEvents())
  const ping = () => connection.request({ method: 'ping' }, noClient, new AbortController().signal)
  await ping()
  clock.advance(20_000)
  await upstream.close()
  const state = () => pool.stateOf(definition)
  await t.rejects(ping(), { code: 'upstream_unavailable' })
  for (const waits of [1_000, 2_000, 4_000, 8_000]) {
    t.match(state(), { awayMs: Number, retriedInMs: waits }, `tried again in ${waits} ms`)
    // Longer than any sweep over the open connections.
    clock.advance(waits)
    t.match(state(), { awayMs: Number, retriedInMs: 0 })
    await t.rejects(ping(), { code: 'upstream_unavailable' })
  }
})

t.test('a server that answers for a moment is not taken for a good one, and one that goes on is', async (t) => {
  const clock = handClock()
  const backoff = createConnectBackoff(clock, () => 0)
  const definition = stdioDefinition()
  const fail = () => backoff.failed(definition, 'key', new Error('away'), true)
  const retriedInMs = () => backoff.stateOf(definition.hash, false).retriedInMs
  clock.advance(60_000)
  for (const waits of [1_000, 2_000, 4_000]) {
    fail()
    t.equal(retriedInMs(), waits)
    clock.advance(waits)
    // The connection is an old one: over HTTP it stays open all the while.
    backoff.reached(definition)
    clock.advance(4_000)
    backoff.alive(definition, 'key', 60_000)
  }
  backoff.reached(definition)
  clock.advance(5_000)
  backoff.alive(definition, 'key', 60_000)
  fail()
  t.equal(retriedInMs(), 1_000, 'it was good for a while: the back-off begins anew')
  for (const [pause, waits] of [
    [100_000, 2_000],
    [130_000, 1_000]
  ] as const) {
    clock.advance(1_000)
    backoff.reached(definition)
    clock.advance(pause)
    fail()
    t.equal(retriedInMs(), waits, 'without a connection meanwhile, what was long ago is no pattern')
  }
})
