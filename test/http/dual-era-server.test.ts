// A server of both eras with `era: auto` that is written as older servers are: what it has only for clients that
// declare something at a handshake, and what it asks by server requests, reaches clients of both eras.

import t, { type Test } from 'tap'
import { answeringClient } from '../kit/answering-client.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'

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

const dual = {
  type: 'stdio',
  command: process.execPath,
  args: [new URL('../kit/dual-era-server.ts', import.meta.url).pathname]
}
const acme = await start(t, dual)

const modern = (method: string, params: Json, capabilities: Json, url = acme.url()) =>
  modernRequest(url, method, params, { token: key, capabilities })
const toolsOf = async (capabilities: Json, url?: string): Promise<string[]> => {
  const { json } = await modern('tools/list', {}, capabilities, url)
  return (json.result.tools as Array<{ name: string }>).map(({ name }) => name).toSorted()
}

/** Calls it, and answers what is asked. @returns the last answer, and what was asked */
async function converse(name: string, capabilities: Json): Promise<{ asked: string[]; result: Json }> {
  const asked: string[] = []
  let params: Json = { name, arguments: {} }
  for (;;) {
    const { json } = await modern('tools/call', params, capabilities)
    const { result } = json as { result: Json }
    if (result?.['resultType'] !== 'input_required') return { asked, result: result ?? json }
    const requests = Object.entries(result['inputRequests'] as Record<string, { method: string }>)
    asked.push(...requests.map(([, { method }]) => method))
    const inputResponses = Object.fromEntries(requests.map(([at, { method }]) => [at, answers[method]]))
    params = { name, arguments: {}, inputResponses, requestState: result['requestState'] }
  }
}

t.test('a client of 2026-07-28 sees the tools for what it declares, and is asked', async (t) => {
  t.same(await toolsOf(able), ['elicits', 'plain', 'samples'])
  t.match(await converse('samples', able), {
    asked: ['sampling/createMessage'],
    result: { content: [{ text: /"hi"/ }] }
  })
  t.match(await converse('elicits', able), {
    asked: ['elicitation/create'],
    result: { content: [{ text: /"ada"/ }] }
  })
  t.match(await converse('plain', able), { asked: [], result: { content: [{ text: '"plain"' }] } })
})

t.test('a client with a session sees the same, and is asked', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', able)
  t.teardown(() => client.close())
  const { result } = await client.request('tools/list')
  t.same((result.tools as Array<{ name: string }>).map(({ name }) => name).toSorted(), ['elicits', 'plain', 'samples'])
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

t.test('a client that declares nothing sees what the server has in 2026-07-28, and is served in it', async (t) => {
  t.same(await toolsOf({}), ['elicits', 'plain'])
  t.match(await converse('plain', {}), { asked: [], result: { content: [{ text: '"plain"' }] } })
  t.match(
    await converse('elicits', {}),
    { asked: [], result: { isError: true, content: [{ text: /2026-07-28|era/ }] } },
    'the SDK refuses it there'
  )
})

t.test('over HTTP a server of 2026-07-28 is never asked for the older era, however many sets there are', async (t) => {
  const up = await startModern()
  t.teardown(() => up.close())
  const only = await start(t, { type: 'http', url: up.url })
  const shared = await toolsOf({}, only.url())
  for (const capabilities of [{ sampling: {} }, { elicitation: {} }, { roots: {} }])
    t.same(await toolsOf(capabilities, only.url()), shared)
  t.equal(up.seen.filter(({ message }) => message?.['method'] === 'initialize').length, 0)
})

t.test('where the older era has less, a server of both is served in 2026-07-28', async (t) => {
  const both = await start(t, modernStdio({ legacy: true }))
  t.same(await toolsOf(able, both.url()), await toolsOf({}, both.url()))
})
