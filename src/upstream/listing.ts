// What one connection offers: its tools, prompts, resources and templates, all pages of them. Entries nobody could use or that could
// hurt are left out and noted; everything else passes with all its members. Bounded, because the other side is not trusted.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { paramHeadersOf } from '../protocol/param-headers.ts'
import { createBudget, maxPages } from './budget.ts'
import { printable } from './decode.ts'
import { nobody } from './exchange.ts'
import type { Implementation, JsonObject, ServerCapabilities } from '../protocol/messages.ts'
import type { Revision } from '../protocol/revisions.ts'
import type { ListKind, Upstream } from '../protocol/seams.ts'

export interface Listing {
  readonly tools: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly resources: readonly JsonObject[]
  readonly templates: readonly JsonObject[]
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  readonly revision: Revision
  /** What was left out and why, one sentence each; empty if nothing was. */
  readonly partial: readonly string[]
  /** Lists that the server answered with an error: empty here, and no news of what they hold. */
  readonly failed: readonly Member[]
  /** How long a server of 2026-07-28 says that each list holds. */
  readonly hints?: Hints
}

export type Hints = Readonly<Partial<Record<Member, Hint>>>

/** From which time on, in milliseconds since the epoch, and for how many milliseconds (2026-07-28 server/utilities/caching). */
export interface Hint {
  readonly ttlMs: number
  readonly fetchedAt: number
}

/** The lists of one kind: see `patched`. */
export type ListingPart = Partial<Pick<Listing, 'tools' | 'prompts' | 'resources' | 'templates' | 'hints'>>

export type Member = 'tools' | 'prompts' | 'resources' | 'templates'

interface ListSpec {
  readonly member: Member
  readonly kind: ListKind
  readonly method: string
  readonly resultMember: string
  readonly key: string
  /** Longest key; names are what models and policies handle, URIs may be long. */
  readonly maxLength: number
}

const specs: readonly ListSpec[] = [
  { member: 'tools', kind: 'tools', method: 'tools/list', resultMember: 'tools', key: 'name', maxLength: 128 },
  { member: 'prompts', kind: 'prompts', method: 'prompts/list', resultMember: 'prompts', key: 'name', maxLength: 128 },
  { member: 'resources', kind: 'resources', method: 'resources/list', resultMember: 'resources', key: 'uri', maxLength: 8_192 },
  { member: 'templates', kind: 'resources', method: 'resources/templates/list', resultMember: 'resourceTemplates', key: 'uriTemplate', maxLength: 8_192 }
]

const maxItems = 5_000
/** Notes beyond this would only repeat themselves; how each list ended is noted beside them. */
const maxEntryNotes = 46

/**
 * Everything that the connection offers. A list whose method fails with an error of the server is left empty and noted, so that one
 * broken list does not take the others away.
 * @param now milliseconds since the epoch, for `hints`; without it there are none
 * @throws GatewayError upstream_*, cancelled; RpcError where every list failed
 */
export async function fetchListing (upstream: Upstream, signal: AbortSignal, now?: () => number): Promise<Listing> {
  const declared = specs.filter(({ kind }) => isObject(upstream.capabilities[kind]))
  const partial: string[] = []
  const failures: unknown[] = []
  const failed: Member[] = []
  const lists: Record<Member, JsonObject[]> = { tools: [], prompts: [], resources: [], templates: [] }
  const hints: Partial<Record<Member, Hint>> = {}
  await Promise.all(declared.map(async (spec) => {
    try {
      const list = await fetchAll(upstream, spec, signal, partial, now)
      lists[spec.member] = list.items
      if (list.hint !== undefined) hints[spec.member] = list.hint
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      failures.push(error)
      failed.push(spec.member)
      partial.push(`${spec.member}: the server answered with error ${error.error.code}`)
    }
  }))
  if (failures.length > 0 && failures.length === declared.length) throw failures[0]
  const { capabilities, serverInfo, instructions, revision } = upstream
  return { ...lists, capabilities, serverInfo, instructions, revision, partial, failed, ...Object.keys(hints).length === 0 ? {} : { hints } }
}

/**
 * The lists of one kind, after a `list_changed`; `resources` brings the templates too.
 * @param now as for `fetchListing`
 * @throws GatewayError upstream_*, cancelled; RpcError
 */
export async function fetchList (upstream: Upstream, kind: ListKind, signal: AbortSignal, now?: () => number): Promise<ListingPart> {
  const part: { -readonly [M in keyof ListingPart]: ListingPart[M] } = {}
  const hints: Partial<Record<Member, Hint>> = {}
  await Promise.all(specs.filter((spec) => spec.kind === kind).map(async (spec) => {
    const list: List = isObject(upstream.capabilities[kind]) ? await fetchAll(upstream, spec, signal, [], now) : { items: [], hint: undefined }
    part[spec.member] = list.items
    if (list.hint !== undefined) hints[spec.member] = list.hint
  }))
  return Object.keys(hints).length === 0 ? part : { ...part, hints }
}

/** The listing with newer lists in place of its own. */
export function patched (listing: Listing, parts: readonly ListingPart[]): Listing {
  return parts.reduce<Listing>((whole, part) => ({
    ...whole,
    ...part,
    ...whole.hints === undefined && part.hints === undefined ? {} : { hints: { ...whole.hints, ...part.hints } }
  }), listing)
}

interface List {
  readonly items: JsonObject[]
  readonly hint: Hint | undefined
}

async function fetchAll (upstream: Upstream, spec: ListSpec, signal: AbortSignal, notes: string[], now: (() => number) | undefined): Promise<List> {
  // Before the first page: the time of the others is not known better.
  const fetchedAt = upstream.era === 'modern' ? now?.() : undefined
  let ttlMs: number | undefined
  const whole = (): List => ({ items, hint: fetchedAt === undefined || ttlMs === undefined ? undefined : { ttlMs, fetchedAt } })
  const { member, method, resultMember, key, maxLength } = spec
  const items: JsonObject[] = []
  const cursors = new Set<string>()
  const budget = createBudget()
  let cursor: string | undefined
  for (let page = 1; ; page++) {
    // "" is a cursor like any other: what counts is whether there is one (2025-11-25 server/utilities/pagination).
    const request = cursor === undefined ? { method } : { method, params: { cursor } }
    const result = await upstream.request(request, nobody, signal).catch((error: unknown) => {
      if (error instanceof RpcError && error.error.code === -32601) return undefined
      throw error
    })
    if (result === undefined) return { items: [], hint: undefined }
    ttlMs = Math.min(ttlMs ?? Infinity, typeof result['ttlMs'] === 'number' && result['ttlMs'] > 0 ? result['ttlMs'] : 0)
    const found = result[resultMember]
    if (!Array.isArray(found)) {
      throw new GatewayError('upstream_protocol', `Upstream ${upstream.name} answered ${method} without a list of ${resultMember}.`, { data: { upstream: upstream.name } })
    }
    for (const item of found as unknown[]) {
      // Of what is left out too: it had to be read.
      if (items.length >= maxItems || !budget.spend(item)) {
        notes.push(`${member}: left out all after ${items.length} entries, which is the limit`)
        return whole()
      }
      const fault = faultOf(item, key, maxLength) ?? (upstream.era === 'modern' && member === 'tools' ? headerFaultOf(item as JsonObject) : undefined)
      if (fault !== undefined) {
        if (notes.length < maxEntryNotes) notes.push(`${member}: left out an entry ${fault}`)
        continue
      }
      items.push(item as JsonObject)
    }
    const next = result['nextCursor']
    if (typeof next !== 'string') return whole()
    if (cursors.has(next)) {
      notes.push(`${member}: stopped at a cursor that came twice`)
      return whole()
    }
    if (page >= maxPages) {
      notes.push(`${member}: left out all after ${maxPages} pages, which is the limit`)
      return whole()
    }
    cursors.add(next)
    cursor = next
  }
}

/**
 * 2026-07-28 basic/transports/streamable-http "Schema Extension": such a tool must not be offered. A server over stdio makes no headers of
 * arguments, so there the annotations have been taken off (`modern/requests.ts`). What the schema refers to is never fetched.
 */
function headerFaultOf ({ name, inputSchema }: JsonObject): string | undefined {
  const found = isObject(inputSchema) ? paramHeadersOf(inputSchema) : []
  return typeof found === 'string' ? `(${printable(String(name), 128)}) with an invalid x-mcp-header: ${printable(found, 200)}` : undefined
}

/** Why an entry cannot be offered, or undefined. Its key becomes a name in maps, logs and policies. */
function faultOf (item: unknown, key: string, maxLength: number): string | undefined {
  if (!isObject(item)) return 'that is not an object'
  const value = item[key]
  if (typeof value !== 'string' || value === '') return `without a ${key}`
  if (value.length > maxLength) return `whose ${key} is longer than ${maxLength} characters`
  // Invisible and direction characters let one name pass for another.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(value)) return `whose ${key} has control or invisible characters`
  if (value === '__proto__') return `whose ${key} is __proto__`
  return undefined
}
