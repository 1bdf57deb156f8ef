// Reads the lists of one connection: all pages of its tools, prompts, resources and resource templates, within limits.
// Entries that are invalid or dangerous are left out and noted; all others pass with all their members.

import {
  type Era,
  type Implementation,
  isObject,
  type JsonObject,
  type Revision,
  rpcCodes,
  RpcError,
  type ServerCapabilities
} from '../../protocol/messages.ts'
import { paramHeadersOf } from '../../protocol/translate/param-headers.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory, type HeldMemory, type MemoryShare } from '../../limits/memory.ts'
import { createListBudget, maxCursorLength, maxPages, printable } from '../rpc/decode-json.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { type ListKind, noClient, type Upstream } from '../../protocol/seams.ts'
import { upstreamError } from '../rpc/errors.ts'

export interface Listing {
  readonly tools: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly resources: readonly JsonObject[]
  readonly templates: readonly JsonObject[]
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  readonly revision: Revision
  /** Sentences that say what was left out and why; empty if nothing was. */
  readonly partial: readonly string[]
  /** Lists that the server answered with an error: they are empty here, but may not be at the server. */
  readonly failed: readonly ListMember[]
  /** How long the answer to `server/discover` of a server of 2026-07-28 is valid, in milliseconds. */
  readonly discoveryTtlMs?: number
  /** How long each list is valid, where the server is one of 2026-07-28 and says so. */
  readonly hints?: Readonly<Partial<Record<ListMember, ListTtl>>>
}

/**
 * When a list was read, in milliseconds since the epoch, and how long it is valid, in milliseconds (2026-07-28
 * server/utilities/caching).
 */
interface ListTtl {
  readonly ttlMs: number
  readonly fetchedAt: number
}

/** The lists of one kind: see `withListingParts`. */
export type ListingPart = Partial<Pick<Listing, 'tools' | 'prompts' | 'resources' | 'templates' | 'hints'>>

type ListMember = 'tools' | 'prompts' | 'resources' | 'templates'

const specOf = (member: ListMember, kind: ListKind, method: string, resultMember: string, key: string) => ({
  member,
  kind,
  method,
  resultMember,
  key
})
type ListSpec = ReturnType<typeof specOf>

const specs: readonly ListSpec[] = [
  specOf('tools', 'tools', 'tools/list', 'tools', 'name'),
  specOf('prompts', 'prompts', 'prompts/list', 'prompts', 'name'),
  specOf('resources', 'resources', 'resources/list', 'resources', 'uri'),
  specOf('templates', 'resources', 'resources/templates/list', 'resourceTemplates', 'uriTemplate')
]

/** The longest names and URIs, in characters. Models and policies handle names, so these are shorter. */
const maxNameLength = 128
const maxUriLength = 8_192
const maxItems = 5_000
/** The most notes about left-out entries; a note of how each list ended comes in addition. */
const maxEntryNotes = 46

/**
 * Everything that the connection offers. A list that the server answers with an error is left empty and noted, so
 * that one broken list does not take the others away.
 * @param now milliseconds since the epoch, for `hints`; without it there are none
 * @param memory for the lists while they are read; beyond it, the rest is left out. Default: without limits
 * @throws GatewayError upstream_*, cancelled; RpcError where every list failed
 */
export async function fetchListing(
  upstream: Upstream,
  signal: AbortSignal,
  now?: () => number,
  memory?: MemoryShare
): Promise<Listing> {
  const declared = specs.filter(({ kind }) => isObject(upstream.capabilities[kind]))
  const partial: string[] = []
  const failures = new Map<ListMember, RpcError>()
  const lists = await fetchLists(upstream, declared, { signal, now, memory, notes: partial }, failures)
  const [first] = failures.values()
  if (first !== undefined && failures.size === declared.length) throw first
  const { capabilities, serverInfo, instructions, revision, discoveryTtlMs } = upstream
  const none = { tools: [], prompts: [], resources: [], templates: [] }
  const failed = [...failures.keys()]
  const listing = { ...none, ...lists, capabilities, serverInfo, instructions, revision, partial, failed }
  return discoveryTtlMs === undefined ? listing : { ...listing, discoveryTtlMs }
}

/**
 * The lists of one kind, after a `list_changed`; `resources` brings the templates too.
 * @param now and `memory`: as for `fetchListing`
 * @throws GatewayError upstream_*, cancelled; RpcError
 */
export async function fetchList(
  upstream: Upstream,
  kind: ListKind,
  signal: AbortSignal,
  now?: () => number,
  memory?: MemoryShare
): Promise<ListingPart> {
  const wanted = specs.filter((spec) => spec.kind === kind)
  if (isObject(upstream.capabilities[kind]))
    return await fetchLists(upstream, wanted, { signal, now, memory, notes: [] })
  return Object.fromEntries(wanted.map(({ member }) => [member, []]))
}

interface Reading {
  readonly signal: AbortSignal
  readonly now: (() => number) | undefined
  readonly memory: MemoryShare | undefined
  readonly notes: string[]
}

/** @param failures where errors of the server go, instead of being thrown */
async function fetchLists(
  upstream: Upstream,
  wanted: readonly ListSpec[],
  { signal, now, memory, notes }: Reading,
  failures?: Map<ListMember, RpcError>
): Promise<ListingPart> {
  const held = memory && holdMemory(memory)
  // Nothing is counted once it is released: where one list fails, another may still be taken in.
  const release = held?.retain()
  const over = new AbortController()
  const within = AbortSignal.any([signal, over.signal])
  const lists: Partial<Record<ListMember, JsonObject[]>> = {}
  const hints: Partial<Record<ListMember, ListTtl>> = {}
  const fetchOne = async (spec: ListSpec): Promise<void> => {
    const { member } = spec
    // The time before the first page, so that no page is older than noted.
    const fetchedAt = upstream.era === 'modern' ? now?.() : undefined
    try {
      const { items, ttlMs } = await fetchPages(upstream, spec, within, notes, held)
      lists[member] = items
      if (fetchedAt !== undefined && ttlMs !== undefined) hints[member] = { ttlMs, fetchedAt }
    } catch (error) {
      if (failures === undefined || !(error instanceof RpcError)) throw error
      failures.set(member, error)
      notes.push(`${member}: the server answered with error ${error.error.code}`)
    }
  }
  await Promise.all(wanted.map(fetchOne)).finally(() => {
    release?.()
    over.abort()
  })
  return Object.keys(hints).length === 0 ? lists : { ...lists, hints }
}

/** The listing with newer lists in place of its own. */
export function withListingParts(listing: Listing, parts: readonly ListingPart[]): Listing {
  return parts.reduce<Listing>(
    (whole, part) => ({
      ...whole,
      ...part,
      ...(whole.hints === undefined && part.hints === undefined ? {} : { hints: { ...whole.hints, ...part.hints } })
    }),
    listing
  )
}

async function fetchPages(upstream: Upstream, spec: ListSpec, signal: AbortSignal, notes: string[], held?: HeldMemory) {
  const { member, method, resultMember } = spec
  const items: JsonObject[] = []
  const cursors = new Set<string>()
  const budget = createListBudget()
  const owner = held?.share ?? { tenant: '', caller: upstream.name }
  /** The shortest time to live of all pages; undefined: no page had one. */
  let ttlMs: number | undefined
  let cursor: string | undefined
  const endAt = (why: string) => {
    notes.push(`${member}: ${why}`)
    return { items, ttlMs }
  }

  /** A step for each entry. @returns why it ended early */
  function* takeItems(found: readonly unknown[]): Steps<string | undefined> {
    for (const item of found) {
      // Entries that are left out count too: they had to be read.
      if (items.length >= maxItems || !budget(item)) return ', which is the limit'
      if (held?.take(jsonSizeOf(item)) === false) return ': there is no memory for more (limits.memoryBytes)'
      const fault = faultOf(item, spec, upstream.era)
      if (fault === undefined) items.push(item as JsonObject)
      else if (notes.length < maxEntryNotes) notes.push(`${member}: left out an entry ${fault}`)
      yield
    }
    return undefined
  }

  for (let page = 1; ; page++) {
    // "" is a cursor like any other: what counts is whether there is one (2025-11-25 server/utilities/pagination).
    const request = cursor === undefined ? { method } : { method, params: { cursor } }
    const result = await upstream.request(request, noClient, signal).catch((error: unknown) => {
      if (error instanceof RpcError && error.error.code === rpcCodes.methodNotFound) return undefined
      throw error
    })
    if (result === undefined) return { items: [], ttlMs: undefined }
    const { [resultMember]: found, nextCursor, ttlMs: ttl } = result
    ttlMs = Math.min(ttlMs ?? Infinity, typeof ttl === 'number' && ttl > 0 ? ttl : 0)
    if (!Array.isArray(found)) {
      const text = `Upstream ${upstream.name} answered ${method} without a list of ${resultMember}.`
      throw upstreamError(upstream.name, 'upstream_protocol', text)
    }
    const why = await runSteps(takeItems(found), owner)
    if (why !== undefined) return endAt(`left out all after ${items.length} entries${why}`)
    if (typeof nextCursor !== 'string') return { items, ttlMs }
    if (nextCursor.length > maxCursorLength) return endAt('stopped at a cursor that is too long')
    if (cursors.has(nextCursor)) return endAt('stopped at a cursor that came twice')
    if (page >= maxPages) return endAt(`left out all after ${maxPages} pages, which is the limit`)
    cursor = nextCursor
    cursors.add(cursor)
  }
}

/** Why an entry cannot be offered, or undefined. Its key becomes a name in maps, logs and policies. */
function faultOf(item: unknown, { member, key }: ListSpec, era: Era): string | undefined {
  if (!isObject(item)) return 'that is not an object'
  const { [key]: value, inputSchema } = item
  if (typeof value !== 'string' || value === '') return `without a ${key}`
  const maxLength = key === 'name' ? maxNameLength : maxUriLength
  if (value.length > maxLength) return `whose ${key} is longer than ${maxLength} characters`
  // Invisible and direction characters let one name pass for another.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(value)) return `whose ${key} has control or invisible characters`
  if (value === '__proto__') return `whose ${key} is __proto__`
  if (era === 'legacy' || member !== 'tools' || !isObject(inputSchema)) return undefined
  // 2026-07-28 basic/transports/streamable-http "Schema Extension": a tool with an invalid annotation must not be
  // offered. Over stdio, where arguments make no headers, `modern-requests.ts` has removed it. What a schema refers to
  // is not fetched.
  const headers = paramHeadersOf(inputSchema)
  if (typeof headers !== 'string') return undefined
  return `(${printable(value, 128)}) with an invalid x-mcp-header: ${printable(headers, 200)}`
}
