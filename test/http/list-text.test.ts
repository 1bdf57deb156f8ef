// The text of a list is written once, however many ask for it.

import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const token = keyOf.ada
const tools = Array.from({ length: 700 }, (_, at) => ({
  name: at === 0 ? 'grow' : `tool_${at}`,
  description: 'x'.repeat(1_000),
  inputSchema: { type: 'object' }
}))
const listLength = JSON.stringify(tools).length

async function listingGateway(t: Test, limits: Record<string, number> = {}) {
  const upstream = await startUpstream({ tools: structuredClone(tools) })
  t.teardown(upstream.close)
  const memory = createMemoryAccount(1024 * 1024 * 1024)
  const acme = await acmeGateway(t, {
    limits,
    upstreams: { up: { type: 'http', url: upstream.url } },
    overrides: { memory }
  })
  await acme.gateway.warm()
  return { acme, memory }
}

/** @returns the characters of JSON that this process wrote meanwhile: it is the gateway's, too */
async function written(action: () => Promise<unknown>): Promise<number> {
  const { stringify } = JSON
  let length = 0
  JSON.stringify = (...given: unknown[]) => {
    const text = Reflect.apply(stringify, JSON, given) as string
    length += text?.length ?? 0
    return text
  }
  try {
    await action()
  } finally {
    JSON.stringify = stringify
  }
  return length
}

t.test('a list that fifty callers ask for is written once for each of their revisions', async (t) => {
  const { acme, memory } = await listingGateway(t)
  const client = await legacyClient(acme.url(), token)
  const before = memory.held
  const length = await written(async () => {
    for (let at = 0; at < 50; at++) {
      const { json, messages } =
        at % 2 === 0
          ? await client.request('tools/list', {}, at % 4 === 0 ? { headers: { accept: 'text/event-stream' } } : {})
          : await modernRequest(acme.url(), 'tools/list', {}, { token })
      t.equal(messages.length, 1)
      if (at < 4) t.same(json.result.tools, tools, 'every letter of it')
      else t.equal(json.result.tools.length, tools.length)
    }
  })
  t.ok(length < 3 * listLength, `${length} characters were written for lists of ${listLength}`)
  await until('what was held of the requests is given back', () => memory.held - before < 3 * listLength)
  t.ok(memory.held - before >= 2 * listLength, 'the text is counted')
})

t.test('callers who ask at once wait for the one text', async (t) => {
  const { acme } = await listingGateway(t)
  const length = await written(async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => modernRequest(acme.url(), 'tools/list', {}, { token }))
    )
    for (const { json } of answers) t.equal(json.result.tools.length, tools.length)
  })
  // Once for all of them, and perhaps once for the store.
  t.ok(length < 3 * listLength, `${length} characters were written`)
})

t.test('pages of a list are put together to the whole of it, and a changed list is another text', async (t) => {
  const { acme } = await listingGateway(t, { pageSize: 300 })
  const client = await legacyClient(acme.url(), token)
  async function all(): Promise<unknown[]> {
    const found: unknown[] = []
    let cursor: unknown
    do {
      const { result } = (await client.request('tools/list', cursor === undefined ? {} : { cursor })).json
      found.push(...(result.tools as unknown[]))
      cursor = result.nextCursor
    } while (cursor !== undefined)
    return found
  }
  for (let round = 0; round < 3; round++) t.same(await all(), tools)
  await client.request('tools/call', { name: 'grow', arguments: { name: 'another' } })
  await until('the list has the new tool', async () => (await all()).length === tools.length + 1)
})
