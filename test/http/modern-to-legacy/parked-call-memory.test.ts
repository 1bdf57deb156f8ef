// What a call that waits for its client costs this process: what its upstream asks, and nothing of what the client has
// sent.

import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { queryObjects } from 'node:v8'
import t from 'tap'
import { gateway } from '../../kit/gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { answersTo, serverRequests, parkingGateway, round, steps } from '../../kit/parking-gateway.ts'

const each = 30_000
const many = (): unknown[] => Array.from({ length: each }, () => ({}))
/** A call that asks so often. */
const asking = (times: number): Json => ({
  name: 'steps',
  arguments: {
    ...(steps(...Array.from({ length: times }, () => ({ ask: [serverRequests.form] })))['arguments'] as Json),
    many: many()
  }
})
/** Objects that are still in use. */
const alive = (): number => queryObjects(Object, { format: 'count' })

/** Keeps nothing of what it gets but what it says of it. */
async function forgetful(t: { teardown(run: () => unknown): void }) {
  const heard: Array<{ length: number; text: unknown; header: string | undefined; coding: string | undefined }> = []
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const parts: Buffer[] = []
    request
      .on('data', (part: Buffer) => parts.push(part))
      .on('end', () => {
        const body = Buffer.concat(parts)
        const { id, method, params } = JSON.parse(body.toString()) as { id?: number; method?: string; params?: Json }
        if (id === undefined || method === undefined) return response.writeHead(202).end()
        const ok = (result: Json) =>
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
        if (method === 'initialize')
          return ok({
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'x', version: '1' }
          })
        if (method === 'tools/list') return ok({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] })
        heard.push({
          length: body.length,
          text: (params?.['arguments'] as Json | undefined)?.['text'],
          header: request.headers['content-length'],
          coding: request.headers['transfer-encoding']
        })
        response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: `of ${id}`, ...serverRequests.form })}\n\n`)
      })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { heard, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` }
}

t.test('retained memory is seen by this test', async (t) => {
  const before = alive()
  const kept = many()
  t.ok(alive() - before > kept.length / 2)
})

t.test('a call that waits keeps nothing of its arguments, whatever carries it', async (t) => {
  const acme = await parkingGateway(t)
  const { url } = await forgetful(t)
  const up = { type: 'http', url, era: 'legacy' }
  const other = await gateway(t, {
    upstreams: { up, own: { ...up, auth: { type: 'signed' } } },
    endpoints: Object.fromEntries(['up', 'own'].map((name) => [name, { upstreams: [name], prefix: '' }])),
    top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
  })
  const ask = (): Json => ({ name: 'ask', arguments: { many: many() } })
  for (const [carrier, place, call] of [
    ['stdio', acme.url('stdio'), (): Json => asking(1)],
    ['http', other.url('up'), ask],
    ['http with a credential of the caller', other.url('own'), ask]
  ] as const) {
    const first = await round(place, 'tools/call', call())
    t.ok(first.result?.['resultType'], 'what opens connections is not counted')
    const before = alive()
    for (let n = 0; n < 3; n++)
      t.equal((await round(place, 'tools/call', call())).result?.['resultType'], 'input_required')
    t.ok(alive() - before < each, `${carrier}: not even one of them is left`)
  }
})

t.test('what is retried keeps nothing either', async (t) => {
  const acme = await parkingGateway(t)
  const there = acme.url('stdio')
  const again = async (): Promise<unknown> => {
    const params = asking(2)
    const { inputRequests, requestState } = await round(there, 'tools/call', params)
    const second = await round(there, 'tools/call', {
      ...params,
      requestState,
      inputResponses: answersTo(inputRequests)
    })
    return second.result?.['resultType']
  }
  await again()
  const before = alive()
  for (let n = 0; n < 2; n++) t.equal(await again(), 'input_required')
  t.ok(alive() - before < each, 'not even one of them is left')
})

t.test('a large request comes whole, with its length', async (t) => {
  const { url, heard } = await forgetful(t)
  const acme = await gateway(t, {
    upstreams: { up: { type: 'http', url, era: 'legacy' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  for (const text of ['é', 'é😀'.repeat(200_000)]) {
    await round(acme.url(), 'tools/call', { name: 'ask', arguments: { text } })
    const { length, header, coding, text: come } = heard.pop() ?? {}
    t.ok(come === text)
    t.equal(header, String(length))
    t.equal(coding, undefined)
  }
})
