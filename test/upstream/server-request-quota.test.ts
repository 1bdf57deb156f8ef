// What servers ask is counted from when it comes until it is answered or withdrawn.

import t from 'tap'
import { RpcError, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { relatedTaskKey } from '../../src/protocol/translate/tasks.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { createConnector } from '../../src/upstream/connect/connect.ts'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createEgress } from '../../src/upstream/http/socket-pool.ts'
import { noClient } from '../../src/protocol/seams.ts'
import {
  callOf,
  handshake,
  httpDefinition,
  never,
  realClock,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { serverRequest, testRpcClient } from '../kit/rpc-client.ts'
import { startUpstream } from '../kit/upstream.ts'

const settled = () => new Promise(setImmediate)
const unanswered = () => recordingClient(() => new Promise(() => {}))
const kib = 1024
const roomy = {
  request: 4 * kib,
  connection: 100 * kib,
  upstream: 100 * kib,
  tenant: 100 * kib,
  all: 100 * kib
}
const limited = (limits: Partial<typeof roomy>) => createServerRequestQuotas({ ...roomy, ...limits })
/** Of one connection. */
const rpcIn = (quotas = createServerRequestQuotas()) => testRpcClient(undefined, undefined, true, quotas)
const heavy = (id: unknown, kibs: number) =>
  serverRequest(id, 'elicitation/create', { message: 'x'.repeat(kibs * kib - 512) })
const warnings = (logged: ReadonlyArray<{ level: number; msg: string }>) =>
  logged.filter(({ level }) => level === 40).map(({ msg }) => msg)

t.test('a server request that is too large is refused with the reason and takes nothing of the quota', async (t) => {
  const { rpc, call, answersTo, logged, quotas } = rpcIn(limited({}))
  const client = unanswered()
  void call(client)
  const values = (count: number) => ({ message: 'who?', junk: Array.from({ length: count }, () => ({})) })
  rpc.receive(heavy('text', 5), 1)
  rpc.receive(serverRequest('values', 'elicitation/create', values(100)), 1)
  for (const id of ['text', 'values'])
    t.match(answersTo(id), [{ error: { code: -32602, message: /too large .* 4096 bytes/ } }])
  t.equal(client.asked.length, 0)
  t.equal(quotas.size, 0)
  t.same(warnings(logged), Array(2).fill('refused a request of the upstream: it is too large'))
  rpc.receive(heavy('smaller', 4), 1)
  rpc.receive(serverRequest('fewer', 'elicitation/create', values(50)), 1)
  t.equal(client.asked.length, 2, 'others are asked')
  t.equal(quotas.size, 4)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: { ok: true } }, 1)
  await settled()
  t.equal(quotas.size, 0)
})

for (const limit of ['connection', 'upstream', 'tenant', 'all'] as const) {
  t.test(`server requests are refused where the quota is used up: ${limit}`, async (t) => {
    const quotas = limited({ [limit]: 9 * kib })
    const { rpc, call, answersTo, logged } = rpcIn(quotas)
    const client = unanswered()
    void call(client)
    for (const id of [1, 2, 3]) rpc.receive(heavy(id, 4), 1)
    t.equal(client.asked.length, 2)
    t.match(answersTo(3), [{ error: { code: 429, message: /Too much waits/ } }])
    t.same(warnings(logged), ['refused a request of the upstream: too much waits for clients to answer already'])
    const widths = { connection: 0, upstream: 1, tenant: 2, all: 3 }
    for (const [at, [tenant, name]] of (
      [
        ['acme', 'files'],
        ['acme', 'other'],
        ['other', 'files']
      ] as const
    ).entries()) {
      const letGo = quotas.open({ tenant: tenantId(tenant), name: upstreamName(name) }).take(4 * kib)
      t.equal(letGo !== undefined, at >= widths[limit], `${tenant}/${name}`)
      letGo?.()
    }
    rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    rpc.receive(heavy(4, 4), 1)
    t.equal(client.asked.length, 3, 'a withdrawn request gives back its part')
  })
}

t.test('however a server request ends, it gives back its part of the quota once', async (t) => {
  const reply = { jsonrpc: '2.0', id: 1, result: {} }
  type Still = ReturnType<typeof rpcIn> & {
    readonly stop: AbortController
    readonly answer: PromiseWithResolvers<unknown>
  }
  const ends: Record<string, (still: Still) => void> = {
    'an answer': ({ answer }) => answer.resolve({ action: 'accept' }),
    'an error of the client': ({ answer }) => answer.reject(new RpcError({ code: -1, message: 'no' })),
    'a fault inside': ({ answer }) => answer.reject(new Error('fault')),
    'the server withdraws it': ({ rpc }) =>
      rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } }),
    'its call is answered': ({ rpc }) => rpc.receive(reply, 1),
    'its call fails': ({ rpc }) => rpc.fail(1, new Error('broken')),
    'its call is cancelled': ({ stop }) => stop.abort(),
    'the server has forgotten it': ({ rpc }) => rpc.withdrawServerRequests('the session is over'),
    'the connection ends': ({ rpc }) => rpc.end(new Error('gone'))
  }
  for (const [name, end] of Object.entries(ends)) {
    const still = rpcIn()
    const answer = Promise.withResolvers<unknown>()
    const stop = new AbortController()
    still
      .call(
        recordingClient(() => answer.promise),
        undefined,
        stop.signal
      )
      .catch(() => {})
    still.rpc.receive(serverRequest('q'), 1)
    t.equal(still.quotas.size, 4, 'it is counted')
    end({ ...still, stop, answer })
    await settled()
    t.equal(still.quotas.size, 0, name)
    answer.resolve({})
    await settled()
    t.equal(still.quotas.size, 0, 'once')
  }
})

t.test('the server request of a task outlives its call, but not its connection', async (t) => {
  const { rpc, call, quotas } = rpcIn()
  const result = call(unanswered())
  rpc.receive(
    serverRequest('q', 'elicitation/create', { message: 'who?', _meta: { [relatedTaskKey]: { taskId: 't' } } }),
    1
  )
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await result
  t.equal(quotas.size, 4)
  rpc.end(new Error('gone'))
  t.equal(quotas.size, 0)
})

t.test('a server request that reaches no client counts nothing', async (t) => {
  const { rpc, call, quotas, events, sent } = testRpcClient({ elicitation: {} }, () => new Promise(() => {}))
  void call(noClient)
  rpc.receive(serverRequest('undeclared', 'sampling/createMessage'))
  rpc.receive(serverRequest('ping', 'ping'))
  rpc.receive(serverRequest('late'), 99)
  await settled()
  t.equal(quotas.size, 0)
  rpc.receive(serverRequest('twice'))
  rpc.receive(serverRequest('twice'))
  rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'twice' } })
  t.equal(quotas.size, 0)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} })
  rpc.end(new Error('gone'))
  const before = [events.asked.length, sent.length]
  rpc.receive(serverRequest('after the end'))
  t.same([events.asked.length, sent.length], before, 'nothing would withdraw it')
  t.equal(quotas.size, 0)
})

t.test('refused server requests take nothing of the quota', async (t) => {
  const { clock, rpc, call, quotas } = rpcIn(limited({ connection: 8 * kib }))
  const result = call(unanswered())
  for (let n = 0; n < 500; n++) {
    rpc.receive(heavy(`a${n}`, 4), 1)
    rpc.receive(heavy(`b${n}`, 6), 1)
    clock.advance(100)
  }
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await result
  t.equal(quotas.size, 0)
})

function connectorIn(quotas: ReturnType<typeof createServerRequestQuotas>) {
  const { supervisor, log } = testConnector()
  return createConnector({
    supervisor,
    egress: createEgress(createEgressGuard()),
    clock: realClock,
    random: () => 0,
    log,
    serverRequestQuotas: quotas
  })
}

t.test('a process that dies while its server requests are open leaves nothing behind', async (t) => {
  const quotas = createServerRequestQuotas()
  const upstream = await connectorIn(quotas).connect(
    stdioDefinition(),
    { ...handshake, capabilities: { elicitation: {} } },
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  const client = unanswered()
  const asking = t.rejects(upstream.request(callOf('elicit', { count: 3 }), client, never), { code: 'upstream_lost' })
  await until(() => client.asked.length === 3, 'the client is asked')
  t.equal(quotas.size, 4)
  await t.rejects(upstream.request(callOf('crash'), recordingClient(), never), { code: 'upstream_lost' })
  await asking
  t.equal(quotas.size, 0)
})

t.test('a retired connection leaves nothing behind once its calls have ended', async (t) => {
  const peer = await startUpstream({ answers: 'sse' })
  t.teardown(peer.close)
  const quotas = createServerRequestQuotas()
  const upstream = await connectorIn(quotas).connect(
    httpDefinition(peer.url),
    { ...handshake, capabilities: { elicitation: {} } },
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  const client = unanswered()
  const stop = new AbortController()
  const asking = t.rejects(upstream.request(callOf('elicit'), client, stop.signal), { code: 'cancelled' })
  await until(() => client.asked.length === 1, 'the client is asked')
  peer.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32022, message: 'no' } }))
    }
  )
  await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), { code: 'upstream_unavailable' })
  t.equal(quotas.size, 4, 'what is in flight goes on')
  stop.abort()
  await asking
  t.equal(quotas.size, 0)
})

t.test('the connections of one process share the quota of a tenant', async (t) => {
  const quotas = limited({ request: 4 * kib, tenant: 5 * kib })
  const connector = connectorIn(quotas)
  const made = await Promise.all(
    ['one', 'two'].map((hash) =>
      connector.connect(
        stdioDefinition({}, { hash }),
        { ...handshake, capabilities: { elicitation: {} } },
        recordingEvents()
      )
    )
  )
  t.teardown(() => Promise.all(made.map((upstream) => upstream.close())))
  const [first, second] = made
  const client = unanswered()
  const asking = first?.request(callOf('elicit', { params: { message: 'x'.repeat(3 * kib) } }), client, never)
  asking?.catch(() => {})
  await until(() => client.asked.length === 1, 'the client is asked')
  t.match(
    await second?.request(
      callOf('elicit', { params: { message: 'x'.repeat(3 * kib) } }),
      recordingClient(async () => ({ action: 'accept' })),
      never
    ),
    { content: [{ text: /429/ }] }
  )
  t.match(
    await second?.request(
      callOf('elicit'),
      recordingClient(async () => ({ action: 'accept' })),
      never
    ),
    { content: [{ text: /accept/ }] }
  )
})
