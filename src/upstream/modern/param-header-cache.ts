// Which arguments of which tools are repeated in headers (2026-07-28 basic/transports/streamable-http "Custom Headers
// from Tool Parameters"): learned from the lists that pass by, and shared by the connections of one definition.

import { isObject, type JsonObject, type Result } from '../../protocol/messages.ts'
import { headersFor, paramHeadersOf, type ParamHeader } from '../../protocol/translate/param-headers.ts'

export interface ParamHeaderCache {
  /** Has a list of tools been seen at all? */
  readonly known: boolean
  /** Takes the page of `tools/list` for this cursor, undefined for the first. It counts when the list is complete. */
  learn(result: Result, cursor: unknown): void
  /** The list is read no further than this cursor, and counts as complete. */
  stop(cursor: unknown): void
  /** Headers of a call, names and values in turn. */
  headers(tool: unknown, args: unknown): string[]
}

/** Characters that are kept of one list: names of tools, names of headers, and the keys that lead to values. */
const maxLength = 1_048_576
/** What keeping a name or a key takes besides its characters. */
const overhead = 16

/** A list that is being read. */
interface Draft {
  /** By name; only tools that have annotations. */
  readonly tools: Map<string, readonly ParamHeader[]>
  length: number
  /** The cursor of the next page. */
  next: unknown
}

export function createParamHeaderCache(): ParamHeaderCache {
  let known: Draft['tools'] | undefined
  /** Two that read the list at the same time share it: the later one starts it anew. */
  let draft: Draft | undefined

  function learnTool({ tools, length }: Draft, { name, inputSchema }: JsonObject): number {
    const found = isObject(inputSchema) ? paramHeadersOf(inputSchema) : []
    // A tool with an invalid annotation is not offered, so nobody calls it.
    if (typeof name !== 'string' || typeof found === 'string' || found.length === 0) return length
    const texts = [name, ...found.flatMap(({ header, path }) => [header, ...path])]
    const total = texts.reduce((sum, text) => sum + text.length + overhead, length)
    if (total <= maxLength) tools.set(name, found)
    return total
  }

  function stop(cursor: unknown): void {
    if (draft === undefined || draft.next !== cursor) return
    known = draft.tools
    draft = undefined
  }

  return {
    get known() {
      return known !== undefined
    },
    learn({ tools, nextCursor }, cursor) {
      if (!Array.isArray(tools)) return
      if (cursor === undefined) draft = { tools: new Map(), length: 0, next: undefined }
      if (draft === undefined || draft.next !== cursor) return
      draft.next = nextCursor
      for (const tool of tools as unknown[]) if (isObject(tool)) draft.length = learnTool(draft, tool)
      if (typeof nextCursor !== 'string') stop(nextCursor)
    },
    stop,
    headers(tool, args) {
      const found = known?.get(tool as string)
      return found === undefined ? [] : Object.entries(headersFor(found, args)).flat()
    }
  }
}

export interface ParamHeaderCaches {
  /** That of a definition, which is forgotten when the last one has released it. */
  lease(hash: string): { readonly paramHeaders: ParamHeaderCache; release(): void }
}

export function createParamHeaderCaches(): ParamHeaderCaches {
  const caches = new Map<string, { readonly paramHeaders: ParamHeaderCache; users: number }>()
  return {
    lease(hash) {
      const shared = caches.get(hash) ?? { paramHeaders: createParamHeaderCache(), users: 0 }
      caches.set(hash, shared)
      shared.users++
      return {
        paramHeaders: shared.paramHeaders,
        release() {
          if (--shared.users === 0) caches.delete(hash)
        }
      }
    }
  }
}
