// Attack: one person gets tokens for ever new client ids, each of which would have limits of its own.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { answersTo, round, script } from '../kit/parking-gateway.ts'
import { httpTaskServer } from '../kit/task-server.ts'
import { isCall } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

t.test('the sessions of one person are counted together, whatever client they are of', async (t) => {
  const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 3 } })
  const open = async (client: number, who: 'ada' | 'bob' = 'ada') => {
    const token = await acme.bearer('JWT', who, { client_id: `client-${client}` })
    const headers = { ...jsonHeaders, authorization: `Bearer ${token}` }
    return await send(acme.url(), { headers, body: initializeBody() })
  }
  const statuses: number[] = []
  for (let client = 0; client < 12; client++) statuses.push((await open(client)).status)
  t.same(statuses, [200, 200, 200, ...Array.from({ length: 9 }, () => 429)])
  t.equal((await open(0, 'bob')).status, 200, 'another person has sessions of its own')
})

t.test('so are calls in flight, over all sessions; another person is not affected', async (t) => {
  const acme = await acmeGateway(t, { limits: { callsPerPrincipal: 3, callsPerTenant: 5 } })
  acme.upstream.override(isCall('slow'), () => {}, Infinity)
  const stop = new AbortController()
  const waiting: Array<Promise<unknown>> = []
  const began = (): number => acme.upstream.seen.filter(isCall('slow')).length
  const call = async (client: number, who: 'ada' | 'bob', sub: string = who) => {
    const token = await acme.bearer('JWT', who, { client_id: `client-${client}`, sub })
    return (await legacyClient(acme.url(), token)).request('tools/call', { name: 'slow' }, { signal: stop.signal })
  }
  for (const client of [1, 2, 3]) {
    waiting.push(call(client, 'ada').catch(() => {}))
    await until('it is at the upstream', () => began() === client)
  }
  t.match((await call(4, 'ada')).json, {
    error: { message: /limits\.callsPerPrincipal/, data: { reason: 'too_many' } }
  })
  for (const client of [1, 2]) {
    waiting.push(call(client, 'bob').catch(() => {}))
    await until('it is at the upstream', () => began() === 3 + client)
  }
  t.match((await call(1, 'bob', 'eve')).json, {
    error: { message: /limits\.callsPerTenant/, data: { reason: 'too_many' } }
  })
  stop.abort()
  await Promise.all(waiting)
})

t.test("so are calls that are parked: one too many takes the place of the person's oldest", async (t) => {
  const acme = await acmeGateway(t, { script: { ...script, answers: 'sse' } })
  const rounds =
    (who: 'ada' | 'bob', client: string) =>
    async (more: Record<string, unknown> = {}) =>
      await round(
        acme.url(),
        'tools/call',
        { name: 'elicit', arguments: {}, ...more },
        {
          token: await acme.bearer('JWT', who, { client_id: client })
        }
      )
  const [ada, rotated, bob] = [rounds('ada', 'one'), rounds('ada', 'two'), rounds('bob', 'one')]
  const [first, kept, others] = [await ada(), await ada(), await bob()]
  for (let n = 0; n < 63; n++) t.match((await rotated()).result, { resultType: 'input_required' })
  const retry = ({ inputRequests, requestState }: typeof first) => ({
    inputResponses: answersTo(inputRequests),
    requestState
  })
  t.match((await ada(retry(first))).error, { data: { reason: 'invalid_state' }, message: /newer ones took/ })
  t.match((await ada(retry(kept))).result, { resultType: 'complete' })
  t.match((await bob(retry(others))).result, { resultType: 'complete' }, 'another person has places of its own')
})

t.test('so are tasks of older servers that are followed: what the oldest asks is declined', async (t) => {
  const acme = await acmeGateway(t, { upstreams: { up: await httpTaskServer(t) } })
  const as = (who: 'ada' | 'bob', client: string) => async (method: string, params: Record<string, unknown>) =>
    await round(acme.url(), method, params, {
      token: await acme.bearer('JWT', who, { client_id: client }),
      capabilities: { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }
    })
  const [ada, rotated, bob] = [as('ada', 'one'), as('ada', 'two'), as('bob', 'one')]
  const asking = async (person: typeof ada): Promise<string> => {
    const taskId = String((await person('tools/call', { name: 'confirm', arguments: {} })).result?.['taskId'])
    await until('it asks', async () => (await person('tasks/get', { taskId })).result?.['inputRequests'] !== undefined)
    return taskId
  }
  const [first, others] = [await asking(ada), await asking(bob)]
  for (let n = 0; n < 64; n++)
    t.match((await rotated('tools/call', { name: 'toil', arguments: {} })).result, { resultType: 'task' })
  await until('it was told that nobody answers', async () => {
    const { result } = await ada('tasks/get', { taskId: first })
    return result?.['status'] !== 'input_required'
  })
  const { result } = await bob('tasks/get', { taskId: others })
  t.match(result, { status: 'input_required' }, 'another person loses none')
  const inputResponses = answersTo(result?.['inputRequests'] as Parameters<typeof answersTo>[0])
  await bob('tasks/update', { taskId: others, inputResponses })
  await until('its answer came', async () => {
    return (await bob('tasks/get', { taskId: others })).result?.['status'] === 'completed'
  })
})

t.test('so are subscriptions to resources, of sessions and of listen streams', async (t) => {
  const acme = await acmeGateway(t, { isolation: 'shared' })
  const tokenOf = (who: 'ada' | 'bob', client: number) => acme.bearer('JWT', who, { client_id: `client-${client}` })
  const session = async (who: 'ada' | 'bob', client: number) =>
    await legacyClient(acme.url(), await tokenOf(who, client))
  const uris = Array.from({ length: 200 }, (_, n) => `test://item/${n}`)
  /** @returns how many of these it was granted */
  const listen = async (who: 'ada' | 'bob', client: number): Promise<number> => {
    const token = await tokenOf(who, client)
    const stream = await modernListen(acme.url(), { resourceSubscriptions: uris }, { token })
    t.teardown(stream.close)
    const acknowledged = await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    return acknowledged.params.notifications.resourceSubscriptions.length
  }
  const params = { uri: 'test://one' }
  const first = await session('ada', 0)
  t.match((await first.request('resources/subscribe', params)).json, { result: {} })
  const granted: number[] = []
  for (let client = 1; client <= 50; client++) granted.push(await listen('ada', client))
  t.same(granted, [...Array.from({ length: 49 }, () => 200), 199], 'with that of the session they are 10,000')
  const rotated = await session('ada', 51)
  t.match((await rotated.request('resources/subscribe', params)).json, {
    error: { message: /All sessions of this caller together have 10000/, data: { reason: 'too_many' } }
  })
  t.equal(await listen('bob', 0), 200, 'another person has subscriptions of its own')
  t.match((await (await session('bob', 1)).request('resources/subscribe', params)).json, { result: {} })
  await first.request('resources/unsubscribe', params)
  t.match((await rotated.request('resources/subscribe', params)).json, { result: {} }, 'one place was free')
})
