// One cell of the matrix: a client, a server behind the gateway, a feature; and what can become of it.

import assert from 'node:assert/strict'
import type { Json } from '../kit/mcp-server.ts'
import type { Revision } from '../../src/protocol/messages.ts'
import type { MatrixClient, Outcome } from './client.ts'
import type { MatrixServer } from './matrix-server.ts'

export type Transport = 'stdio' | 'Streamable HTTP' | 'HTTP+SSE'

export interface Cell {
  readonly client: MatrixClient
  readonly state: MatrixServer
  readonly transport: Transport
  /** Unlike that of any other cell. */
  readonly token: string
}

export type Kind = 'passes' | 'translated' | 'impossible'

/** What a cell turned out to be. */
export interface Seen {
  readonly kind: Kind
  /** How the impossible shows: a JSON-RPC code, a result with isError, or nothing that comes. */
  readonly error?: number | 'isError' | 'silence'
}

/** @throws AssertionError where the cell is neither right nor properly refused */
export type Feature = (cell: Cell) => Promise<Seen>

export const passes: Seen = { kind: 'passes' }
export const translated: Seen = { kind: 'translated' }
export const silent: Seen = { kind: 'impossible', error: 'silence' }

export const isModern = (revision: Revision): boolean => revision === '2026-07-28'
/** Do both sides have the same era? */
const sameEra = ({ client, state }: Cell): boolean => isModern(client.revision) === isModern(state.revision)
export const byEra = (cell: Cell): Seen => (sameEra(cell) ? passes : translated)

/** The result without what each hop of 2026-07-28 says for itself. */
export function bare({ resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result }: Json): Json {
  const { 'io.modelcontextprotocol/serverInfo': _server, ...meta } = (_meta ?? {}) as Json
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta }
}

/** Why a call was refused, if it was. */
export function refusal({ error, result }: Outcome): Seen | undefined {
  if (error !== undefined) return { kind: 'impossible', error: error.code }
  return result?.['isError'] === true ? { kind: 'impossible', error: 'isError' } : undefined
}

/** @throws AssertionError where the request was refused */
export function resultOf(outcome: Outcome, what: string): Json {
  assert.ok(outcome.result !== undefined, `${what}: ${JSON.stringify(outcome.error ?? outcome)}`)
  return bare(outcome.result)
}

export async function call(
  { client, token }: Cell,
  name: string,
  args: Json = {},
  options: Parameters<MatrixClient['request']>[2] = {},
  members: Json = {}
): Promise<Outcome> {
  return await client.request('tools/call', { name, arguments: { token, ...args }, ...members }, options)
}

/** The text of a tool's result. */
export function textOf(result: Json): string {
  const block = (result['content'] as Json[]).find(({ type }) => type === 'text')
  return String(block?.['text'])
}

export const equal = (one: unknown, other: unknown): boolean => {
  try {
    assert.deepEqual(one, other)
    return true
  } catch {
    return false // Different is an answer here, not a failure.
  }
}

export const members = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  'resources/templates': 'resourceTemplates'
} as const

/** All pages of a list. */
export async function listAll(
  { client }: Cell,
  kind: keyof typeof members
): Promise<{ entries: Json[]; pages: number }> {
  const entries: Json[] = []
  let cursor: unknown
  let pages = 0
  do {
    const result = resultOf(
      await client.request(`${kind}/list`, cursor === undefined ? {} : { cursor }),
      `${kind}/list`
    )
    entries.push(...(result[members[kind]] as Json[]))
    cursor = result['nextCursor']
    assert.ok(++pages < 20, `${kind}/list has no end`)
  } while (cursor !== undefined)
  return { entries, pages }
}

/** What a list shows of the server: names have to be the same; the entries may have been cut to the revision. */
export function compared(listed: Json[], offers: Json[], name: string): Seen {
  // What comes and goes is the business of other cells, whose notifications may still be on the way.
  const [entries, offered] = [listed, offers].map((list) =>
    list.filter((entry) => !String(entry[name]).endsWith('flipped'))
  ) as [Json[], Json[]]
  assert.deepEqual(
    entries.map((entry) => entry[name]),
    offered.map((entry) => entry[name])
  )
  return equal(entries, offered) ? passes : translated
}
