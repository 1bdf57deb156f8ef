// Which arguments of which tools are repeated in headers (2026-07-28 basic/transports/streamable-http "Custom Headers from Tool
// Parameters"): learned from the lists that pass by, and shared by the connections of one definition, which see the same tools.

import { isObject } from '../../protocol/messages.ts'
import { headersFor, paramHeadersOf } from '../../protocol/param-headers.ts'
import type { JsonObject, Result } from '../../protocol/messages.ts'
import type { ParamHeader } from '../../protocol/param-headers.ts'

export interface Schemas {
  /** Has a list of tools been seen at all? */
  readonly known: boolean
  /** Takes the page of `tools/list` that came for this cursor, undefined for the first. What it says counts when the list is complete. */
  learn (result: Result, cursor: unknown): void
  /** Whoever reads the list goes no further than this cursor: it is as complete as it gets. */
  stop (cursor: unknown): void
  /** Headers of a call, names and values in turn. */
  headers (tool: unknown, args: unknown): string[]
}

/** Characters that are kept of one list: names of tools, names of headers, and the keys that lead to values. */
const maxKept = 1_048_576
/** What keeping a name or a key costs besides its characters. */
const overhead = 16

/** A list that is being read. */
interface Draft {
  /** Only tools that have annotations. */
  readonly annotated: Map<string, readonly ParamHeader[]>
  kept: number
  /** The cursor of the next page. */
  next: unknown
}

export function createSchemas (): Schemas {
  let annotated: Draft['annotated'] | undefined
  /** Of whoever began last; to the others it makes no difference who reads the list. */
  let draft: Draft | undefined

  function learnTool ({ name, inputSchema }: JsonObject, draft: Draft): void {
    if (typeof name !== 'string') return
    const found = isObject(inputSchema) ? paramHeadersOf(inputSchema) : []
    // An invalid annotation makes the tool one that is not offered (`listing.ts`), so nobody calls it.
    if (typeof found === 'string' || found.length === 0) return
    draft.kept += costOf(name, found)
    if (draft.kept <= maxKept) draft.annotated.set(name, found)
  }

  function stop (cursor: unknown): void {
    if (draft === undefined || draft.next !== cursor) return
    annotated = draft.annotated
    draft = undefined
  }

  return {
    get known () { return annotated !== undefined },
    learn ({ tools, nextCursor }, cursor) {
      if (!Array.isArray(tools)) return
      if (cursor === undefined) draft = { annotated: new Map(), kept: 0, next: undefined }
      else if (draft?.next !== cursor) return
      if (draft === undefined) return
      draft.next = nextCursor
      for (const tool of tools as unknown[]) if (isObject(tool)) learnTool(tool, draft)
      if (typeof nextCursor !== 'string') stop(nextCursor)
    },
    stop,
    headers (tool, args) {
      const found = annotated?.get(tool as string)
      return found === undefined ? [] : Object.entries(headersFor(found, args)).flat()
    }
  }
}

function costOf (name: string, annotations: readonly ParamHeader[]): number {
  const texts = [name, ...annotations.flatMap(({ header, path }) => [header, ...path])]
  return texts.reduce((sum, { length }) => sum + length + overhead, 0)
}

export interface SchemaShelf {
  /** Those of a definition. The last one to release them forgets them. */
  take (hash: string): { readonly schemas: Schemas, release (): void }
}

export function createSchemaShelf (): SchemaShelf {
  const shelf = new Map<string, { readonly schemas: Schemas, users: number }>()
  return {
    take (hash) {
      let found = shelf.get(hash)
      if (found === undefined) shelf.set(hash, found = { schemas: createSchemas(), users: 0 })
      const mine = found
      mine.users++
      return {
        schemas: mine.schemas,
        release () {
          if (--mine.users === 0) shelf.delete(hash)
        }
      }
    }
  }
}
