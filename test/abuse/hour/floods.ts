// What an attacking MCP server says in answer to a call or a list, over whatever carries it: text, piece by piece.

import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Random } from '../../fuzz/random.ts'

type Json = Record<string, unknown>

export interface Said {
  readonly id: unknown
  readonly chance: Random
  /** A message as its transport carries it: an event, or a line. */
  readonly frame: (text: string) => string
}

export type Flood = (said: Said) => Iterable<string>

const notification = (method: string, params: Json): string => JSON.stringify({ jsonrpc: '2.0', method, params })
const resultText = (id: unknown, members: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${members}}}`

/** In answer to `tools/call`. */
export const callFloods: Readonly<Record<string, Flood>> = {
  *notifications({ id, chance, frame }) {
    const data = 'x'.repeat(chance.pick([1, 200, 20_000]))
    const one = chance.pick([
      () => notification('notifications/message', { level: 'error', data }),
      () =>
        notification('notifications/progress', { progressToken: chance.pick([1, 'x']), progress: 1, message: data }),
      () => notification('notifications/tools/list_changed', {}),
      () => notification('notifications/resources/updated', { uri: `long://item/${data.slice(0, 1_000)}` }),
      () => notification('notifications/cancelled', { requestId: id }),
      () => notification(`notifications/${data}`, {})
    ])
    const count = chance.pick([1_000, 20_000])
    for (let n = 0; n < count && n * data.length < 50_000_000; n += 50) yield frame(one()).repeat(50)
    yield frame(resultText(id, '"content":[]'))
  },
  *elicitations({ id, chance, frame }) {
    const method = chance.pick(['elicitation/create', 'sampling/createMessage', 'roots/list', 'ping', 'unknown/method'])
    const params = { message: 'x'.repeat(chance.pick([1, 5_000])), requestedSchema: { type: 'object', properties: {} } }
    for (let n = 0; n < chance.pick([100, 5_000]); n++)
      yield frame(
        JSON.stringify({ jsonrpc: '2.0', id: `s${n}`, method, params: { ...params, messages: [], maxTokens: 1 } })
      )
    if (chance.chance(0.5)) yield frame(resultText(id, '"content":[]'))
  },
  *garbage({ chance }) {
    const line = chance.pick([
      'z\n',
      '\n',
      '{},\n',
      '{}\n',
      ': x\n',
      'id: 1\n',
      'retry: 1e9\n',
      'data: {\n\n',
      'data\n',
      '[]\n',
      '\0\n'
    ])
    for (let n = 0; n < 400; n++) yield line.repeat(1_000)
  },
  *endlessLine({ chance }) {
    const piece = chance.pick(['x', '\\u0000', '{},', '[', '1e999,', '"', ' ']).repeat(20_000)
    yield chance.pick(['data: {"jsonrpc":"2.0","result":{"x":"', '{"jsonrpc":"2.0","result":{"x":[', '{"x":', ''])
    for (let n = 0; n < 800; n++) yield piece
  },
  *bigAnswers({ id, chance, frame }) {
    const [unit, most] = chance.pick<[string, number]>([
      ['"x",', 200_000],
      ['{},', 5_000_000],
      ['1e999,', 2_000_000],
      ['12345678901234567890,', 4_000],
      ['{"type":"text","text":"hello"},', 300_000]
    ])
    const list = unit.repeat(chance.below(most))
    const text = chance.chance(0.5) ? `"${'\\n'.repeat(7_000_000)}"` : `[${list}1]`
    yield frame(resultText(id, `"content":[],"structuredContent":{"x":${text}}`))
  },
  *nesting({ id, chance, frame }) {
    const depth = chance.pick([100, 5_000, 3_000_000])
    yield frame(resultText(id, `"content":[],"x":${'['.repeat(depth)}${']'.repeat(depth)}`))
  },
  *manyAnswers({ id, frame }) {
    for (let n = 0; n < 300; n++) yield frame(resultText(n === 150 ? id : n, '"content":[]')).repeat(50)
  }
}

const toolsOf = (count: number, chance: Random, size: number): string =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      name: `t${at}x${chance.below(1_000_000)}`,
      description: 'd'.repeat(size),
      inputSchema: { type: 'object', properties: { a: { type: 'string' } } }
    })
  ).join()

const attackTool = '{"name":"attack","inputSchema":{"type":"object"}}'

/** In answer to `tools/list`. */
export const listFloods: Readonly<Record<string, Flood>> = {
  *hugeLists({ id, chance, frame }) {
    const list = toolsOf(chance.pick([20_000, 100]), chance, chance.pick([10, 600]))
    yield frame(resultText(id, `"tools":[${attackTool},${list}]`))
  },
  *changingLists({ id, chance, frame }) {
    yield frame(resultText(id, `"tools":[${attackTool},${toolsOf(500, chance, 200)}]`))
  },
  *endlessPages({ id, chance, frame }) {
    yield frame(
      resultText(id, `"tools":[${toolsOf(300, chance, 200)}],"nextCursor":"${chance.below(1e9)}${'x'.repeat(500)}"`)
    )
  },
  *oddLists({ id, chance, frame }) {
    const entry = chance.pick([
      'null',
      '{}',
      '{"name":1}',
      '[[]]',
      '{"name":"a","inputSchema":{"$ref":"#"}}',
      '{"name":"__proto__"}'
    ])
    yield frame(resultText(id, `"tools":[${attackTool},${`${entry},`.repeat(10_000)}{}]`))
  }
}

/** Writes as fast as the other side reads, until all is written or nobody reads any more. */
export async function pour(to: Writable, pieces: Iterable<string>): Promise<void> {
  const closed = new AbortController()
  const close = (): void => closed.abort()
  to.once('close', close).once('error', close)
  for (const piece of pieces) {
    if (to.destroyed || to.writableEnded) break
    if (!to.write(piece)) await once(to, 'drain', { signal: closed.signal }).catch(() => {})
  }
  to.off('close', close).off('error', close)
}

/** What a server is that answers rightly until it attacks. @returns the result of a request; undefined: it has none */
export function politeResult(method: unknown, params: Json): Json | undefined {
  const capabilities = {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: {},
    completions: {},
    logging: {}
  }
  const results: Record<string, Json> = {
    initialize: {
      protocolVersion: params['protocolVersion'],
      capabilities,
      serverInfo: { name: 'attacker', version: '1' }
    },
    ping: {},
    'tools/list': { tools: [JSON.parse(attackTool)] },
    'prompts/list': { prompts: [] },
    'resources/list': { resources: [{ uri: 'long://item/1', name: 'one' }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'long://item/{id}', name: 'any' }] },
    'resources/subscribe': {},
    'logging/setLevel': {}
  }
  return results[String(method)]
}
