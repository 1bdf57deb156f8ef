// A server of both eras with `era: auto` that is written as older servers are: what it has only for clients that
// declare something at a handshake, and what it asks by server requests, reaches clients of both eras.

import t, { type Test } from 'tap'
import { answeringClient } from '../kit/answering-client.ts'
import { startDualEra } from '../kit/dual-era-server.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

const able = { sampling: {}, elicitation: { form: {} } }
const answers: Readonly<Record<string, Json>> = {
  'sampling/createMessage': { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' } },
  'elicitation/create': { action: 'accept', content: { name: 'ada' } }
}

const start = (t: Test, upstream: Json) =>
  gateway(t, {
    upstreams: { dual: upstream },
    endpoints: { default: { upstreams: ['dual'], prefix: '' } },
    limits: { coldStartMs: 30_000 }
  })

const dual = (...args: string[]) => ({
  type: 'stdio',
  command: process.execPath,
  args: [new URL('../kit/dual-era-server.ts', import.meta.url).pathname, ...args]
})

async function dualHttp(t: Test, options?: Parameters<typeof startDualEra>[0]) {
  const up = await startDualEra(options)
  t.teardown(() => up.close())
  return { seen: up.seen, upstream: { type: 'http', url: up.url } }
}

type Gateway = Awaited<ReturnType<typeof start>>

const modern = ({ url }: Gateway, method: string, params: Json, capabilities: Json) =>
  modernRequest(url(), method, params, { token: key, capabilities })

async function toolsOf(acme: Gateway, capabilities: Json): Promise<string[]> {
  const { json } = await modern(acme, 'tools/list', {}, capabilities)
  return (json.result.tools as Array<{ name: string }>).map(({ name }) => name).toSorted()
}

/** Calls it, and answers what is asked. @returns the last answer, and what was asked */
async function converse(acme: Gateway, name: string, capabilities: Json): Promise<{ asked: string[]; result: Json }> {
  const asked: string[] = []
  let params: Json = { name, arguments: {} }
  for (;;) {
    const { json } = await modern(acme, 'tools/call', params, capabilities)
    const { result } = json as { result: Json }
    if (result?.['resultType'] !== 'input_required') return { asked, result: result ?? json }
    const requests = Object.entries(result['inputRequests'] as Record<string, { method: string }>)
    asked.push(...requests.map(([, { method }]) => method))
    const inputResponses = Object.fromEntries(requests.map(([at, { method }]) => [at, answers[method]]))
    params = { name, arguments: {}, inputResponses, requestState: result['requestState'] }
  }
}

const elicited = { asked: ['elicitation/create'], result: { content: [{ text: /"ada"/ }] } }
const plain = { asked: [], result: { content: [{ text: '"plain"' }] } }

for (const [transport, upstreamOf] of Object.entries({
  stdio: async (_t: Test) => dual(),
  HTTP: async (t: Test) => (await dualHttp(t)).upstream
})) {
  t.test(`over ${transport}, a client of 2026-07-28 sees the tools for what it declares, and is asked`, async (t) => {
    const acme = await start(t, await upstreamOf(t))
    t.same(await toolsOf(acme, able), ['elicits', 'inquires', 'plain', 'samples'])
    t.match(await converse(acme, 'samples', able), {
      asked: ['sampling/createMessage'],
      result: { content: [{ text: /"hi"/ }] }
    })
    t.match(await converse(acme, 'elicits', able), elicited)
    t.match(await converse(acme, 'inquires', able), elicited)
    t.match(await converse(acme, 'plain', able), plain)
  })

  t.test(`over ${transport}, a client with a session sees the same, and is asked`, async (t) => {
    const acme = await start(t, await upstreamOf(t))
    const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', able)
    t.teardown(() => client.close())
    const { result } = await client.request('tools/list')
    t.same((result.tools as Array<{ name: string }>).map(({ name }) => name).toSorted(), [
      'elicits',
      'inquires',
      'plain',
      'samples'
    ])
    for (const [name, method, answer] of [
      ['samples', 'sampling/createMessage', /"hi"/],
      ['elicits', 'elicitation/create', /"ada"/]
    ] as const) {
      const call = await client.start('tools/call', { name, arguments: {} })
      const [question] = await call.serverRequests()
      t.equal(question?.['method'], method)
      await client.answer(question as Json, answers[method] as Json)
      t.match(await call.final(), { result: { content: [{ text: answer }] } })
    }
  })

  t.test(`over ${transport}, a client that declares nothing is served in 2026-07-28`, async (t) => {
    const acme = await start(t, await upstreamOf(t))
    t.same(await toolsOf(acme, {}), ['elicits', 'inquires', 'plain'])
    t.match(await converse(acme, 'plain', {}), plain)
    t.match(
      await converse(acme, 'elicits', {}),
      { asked: [], result: { isError: true, content: [{ text: /2026-07-28|era/ }] } },
      'the SDK refuses it there'
    )
  })
}

t.test('a server that lists the same for everybody asks by server requests, from the very first call on', async (t) => {
  for (const upstream of [dual('even'), (await dualHttp(t, { even: true })).upstream]) {
    const acme = await start(t, upstream)
    await until('its lists are known', async () => (await toolsOf(acme, {})).length > 0)
    t.match(await converse(acme, 'elicits', able), elicited, 'nobody has listed anything for such a client')
    t.match(await converse(acme, 'inquires', able), elicited)
    t.same(await toolsOf(acme, able), ['elicits', 'inquires', 'plain'])
  }
})

t.test('a server whose older era keeps no sessions is served in 2026-07-28: only there can it ask', async (t) => {
  const { seen, upstream } = await dualHttp(t, { sessions: false })
  const acme = await start(t, upstream)
  t.same(await toolsOf(acme, able), ['elicits', 'inquires', 'plain'])
  t.match(await converse(acme, 'inquires', able), elicited)
  t.notOk(seen.includes('POST initialize'))

  for (const session of ['first', 'second']) {
    const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', able)
    t.teardown(() => client.close())
    t.match(await client.request('tools/call', { name: 'plain', arguments: {} }), { result: plain.result })
    const call = await client.start('tools/call', { name: 'inquires', arguments: {} })
    const [question] = await call.serverRequests()
    await client.answer(question as Json, answers['elicitation/create'] as Json)
    t.match(await call.final(), { result: elicited.result }, `the client of the ${session} session is asked`)
  }
  t.equal(seen.filter((each) => each === 'POST initialize').length, 1, 'found out with the first session')
})

t.test('a server that names an older revision has views of it, though it answers a GET with 405', async (t) => {
  const acme = await start(t, (await dualHttp(t, { shows: 'revision' })).upstream)
  t.match(await converse(acme, 'samples', able), { asked: ['sampling/createMessage'] })
})

t.test('a server that shows nothing of its older era has views of it once a session speaks it', async (t) => {
  const { seen, upstream } = await dualHttp(t, { shows: 'nothing' })
  const acme = await start(t, upstream)
  t.same(await toolsOf(acme, able), ['elicits', 'inquires', 'plain'])
  t.notOk(seen.includes('POST initialize'))
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', able)
  t.teardown(() => client.close())
  t.match(await client.request('tools/call', { name: 'plain', arguments: {} }), { result: plain.result })
  await until('the caller sees it', async () => (await toolsOf(acme, able)).includes('samples'))
  t.match(await converse(acme, 'elicits', able), elicited)
})

t.test('sessions that share a process are asked in 2026-07-28, for nothing is declared at its handshake', async (t) => {
  const acme = await start(t, { ...dual(), isolation: 'principal' })
  const inquire = async (capabilities: Json) => {
    const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', capabilities)
    t.teardown(() => client.close())
    return { client, call: await client.start('tools/call', { name: 'inquires', arguments: {} }) }
  }
  const { client, call } = await inquire(able)
  const [question] = await call.serverRequests()
  await client.answer(question as Json, answers['elicitation/create'] as Json)
  t.match(await call.final(), { result: elicited.result })
  t.match(await (await inquire({})).call.final(), { result: { isError: true } }, 'each by what it declares itself')
})

t.test('era: modern keeps a server of both eras in 2026-07-28', async (t) => {
  const acme = await start(t, { ...dual(), era: 'modern' })
  t.same(await toolsOf(acme, able), ['elicits', 'inquires', 'plain'])
  t.match(await converse(acme, 'inquires', able), elicited)
  t.match(await converse(acme, 'elicits', able), { asked: [], result: { isError: true } })
})

t.test(
  'over HTTP a server of 2026-07-28 gets one GET, and never an initialize, however many sets there are',
  async (t) => {
    const up = await startModern()
    t.teardown(() => up.close())
    const only = await start(t, { type: 'http', url: up.url })
    const shared = await toolsOf(only, {})
    for (const capabilities of [{ sampling: {} }, { elicitation: {} }, { roots: {} }])
      t.same(await toolsOf(only, capabilities), shared)
    t.equal(up.seen.filter(({ message }) => message?.['method'] === 'initialize').length, 0)
    t.equal(up.seen.filter(({ method }) => method === 'GET').length, 1)
  }
)

t.test('a server of 2026-07-28 that answers a GET in another way has no older era, and is asked once', async (t) => {
  for (const status of [401, 403, 404, 406, 501]) {
    const up = await startModern()
    t.teardown(() => up.close())
    up.override(
      ({ method }) => method === 'GET',
      (response) => response.writeHead(status).end(),
      Infinity
    )
    const only = await start(t, { type: 'http', url: up.url })
    for (const capabilities of [{ sampling: {} }, { elicitation: {} }]) await toolsOf(only, capabilities)
    t.equal(up.seen.filter(({ method }) => method === 'GET').length, 1, `${status}`)
  }
})

t.test('where the older era has less, a server of both is served in 2026-07-28', async (t) => {
  const both = await start(t, modernStdio({ legacy: true }))
  t.same(await toolsOf(both, able), await toolsOf(both, {}))
})
