// Which arguments of which tools are repeated in headers (2026-07-28 basic/transports/streamable-http "Custom Headers
// from Tool Parameters"): learned from the lists that pass by, or read for the headers of a call.

import { isObject, type JsonObject, type Result } from '../../protocol/messages.ts'
import { noClient } from '../../protocol/seams.ts'
import { headersFor, type ParamHeader, paramHeadersOf } from '../../protocol/translate/param-headers.ts'
import { deadline } from '../../time/clock.ts'
import { createListBudget, maxCursorLength, maxPages } from '../rpc/decode-json.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'

/**
 * The most characters kept of one list: the names of its tools and headers, and the property names of its arguments.
 */
const maxLength = 1_048_576
/** Added for each name and property name, besides its characters. */
const overhead = 16
/**
 * The shortest time between two starts of reading the list, in milliseconds. Without it a server could make the gateway
 * read a whole list by each refusal of a few bytes.
 */
const everyMs = 1_000

/** A list that is being read. */
interface Draft {
  /** The annotated tools, by name. */
  readonly tools: Map<string, readonly ParamHeader[]>
  length: number
  /** The cursor of the next page. */
  next: unknown
}

/** One that is too long ends the list. */
const isCursor = (next: unknown): boolean => typeof next === 'string' && next.length <= maxCursorLength

export type ParamHeaderCache = ReturnType<typeof createParamHeaderCache>

export function createParamHeaderCache() {
  let known: Draft['tools'] | undefined
  /** Shared by concurrent readers of the list: a reader that begins later starts it anew. */
  let draft: Draft | undefined

  function learnTool({ tools, length }: Draft, { name, inputSchema }: JsonObject): number {
    const found = isObject(inputSchema) ? paramHeadersOf(inputSchema) : []
    // A tool with an invalid annotation is not listed, so no client calls it.
    if (typeof name !== 'string' || typeof found === 'string' || found.length === 0) return length
    const texts = [name, ...found.flatMap(({ header, path }) => [header, ...path])]
    const total = texts.reduce((sum, text) => sum + text.length + overhead, length)
    if (total <= maxLength) tools.set(name, found)
    return total
  }

  /** Stops reading at this cursor; the list counts as complete. */
  function stop(cursor: unknown): void {
    if (draft === undefined || draft.next !== cursor) return
    known = draft.tools
    draft = undefined
  }

  return {
    /** Whether a list of tools was seen. */
    get known() {
      return known !== undefined
    },
    /** Takes the page of `tools/list` for this cursor, undefined for the first. It counts when the list is complete. */
    learn({ tools, nextCursor }: Result, cursor: unknown): void {
      if (!Array.isArray(tools)) return
      if (cursor === undefined) draft = { tools: new Map(), length: 0, next: undefined }
      if (draft === undefined || draft.next !== cursor) return
      draft.next = nextCursor
      for (const tool of tools as unknown[]) if (isObject(tool)) draft.length = learnTool(draft, tool)
      if (!isCursor(nextCursor)) stop(nextCursor)
    },
    stop,
    /** Returns the headers of a call as names and values in turn. */
    headers(tool: unknown, args: unknown): string[] {
      const found = known?.get(tool as string)
      return found === undefined ? [] : Object.entries(headersFor(found, args)).flat()
    }
  }
}

export type ParamHeaderCaches = ReturnType<typeof createParamHeaderCaches>

/** Shared by the connections of one definition. */
export function createParamHeaderCaches() {
  const caches = new Map<string, { readonly paramHeaders: ParamHeaderCache; users: number }>()
  return {
    /** Leases the cache of a definition, which is forgotten when the last user has released it. */
    lease(hash: string) {
      const shared = caches.get(hash) ?? { paramHeaders: createParamHeaderCache(), users: 0 }
      caches.set(hash, shared)
      shared.users++
      return {
        paramHeaders: shared.paramHeaders,
        release(): void {
          if (--shared.users === 0) caches.delete(hash)
        }
      } as const
    }
  }
}

/** Reads the tools of a server: once for all calls that need them at the same time, and not at every refusal. */
export function createToolReader(
  { name, connectMs }: Pick<UpstreamDefinition, 'name' | 'connectMs'>,
  { clock, log }: Pick<LinkContext, 'clock' | 'log'>,
  rpc: RpcClient,
  paramHeaders: ParamHeaderCache
) {
  let count = 0
  let reading: Promise<void> | undefined
  let begunAt = -Infinity

  async function readTools(): Promise<void> {
    const limit = deadline(clock, connectMs, undefined)
    const isWithin = createListBudget()
    const cursors = new Set<unknown>()
    try {
      for (let cursor: unknown; ;) {
        const request = cursor === undefined ? { method: 'tools/list' } : { method: 'tools/list', params: { cursor } }
        const result = await rpc.request(request, noClient, limit.signal)
        paramHeaders.learn(result, cursor)
        const { tools, nextCursor } = result
        const within = !Array.isArray(tools) || tools.every(isWithin)
        if (!isCursor(nextCursor) || cursors.has(nextCursor) || cursors.size + 1 >= maxPages || !within) {
          paramHeaders.stop(nextCursor)
          count++
          return
        }
        cursor = nextCursor
        cursors.add(cursor)
      }
    } catch (err) {
      log.warn({ err, upstream: name }, 'the tools of the upstream could not be read for the headers of calls')
    } finally {
      limit.close()
    }
  }

  return {
    /** The number of complete readings of the tools. */
    get count() {
      return count
    },
    /** Reads the tools. Never rejects. @returns undefined if `everyMs` have not passed since the last reading began */
    read(): Promise<void> | undefined {
      if (reading !== undefined) return reading
      // A negative time means that the clock was set back: the tools are read then.
      const passedMs = clock.now() - begunAt
      if (passedMs >= 0 && passedMs < everyMs) return undefined
      begunAt = clock.now()
      return (reading = readTools().finally(() => {
        reading = undefined
      }))
    }
  }
}
