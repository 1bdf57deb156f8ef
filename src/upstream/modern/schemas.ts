// Which arguments of which tools are repeated in headers (2026-07-28 basic/transports/streamable-http "Custom Headers from Tool
// Parameters"): learned from the lists that pass by, and shared by the connections of one definition, which see the same tools.

import { isObject } from '../../protocol/messages.ts'
import { headersFor, paramHeadersOf } from '../../protocol/param-headers.ts'
import type { JsonObject, Result } from '../../protocol/messages.ts'
import type { ParamHeader } from '../../protocol/param-headers.ts'

export interface Schemas {
  /** Has a list of tools been seen at all? */
  readonly known: boolean
  /** Takes one page of `tools/list`. */
  learn (result: Result): void
  /** Headers of a call, names and values in turn. */
  headers (tool: unknown, args: unknown): string[]
}

/** As many tools as a listing may have. */
const maxTools = 5_000

export function createSchemas (): Schemas {
  /** Only tools that have annotations. */
  const annotated = new Map<string, readonly ParamHeader[]>()
  let known = false

  function learnTool (tool: JsonObject): void {
    const { name, inputSchema } = tool
    if (typeof name !== 'string') return
    annotated.delete(name)
    const found = isObject(inputSchema) ? paramHeadersOf(inputSchema) : []
    // An invalid annotation makes the tool one that is not offered (`listing.ts`), so nobody calls it.
    if (typeof found !== 'string' && found.length > 0 && annotated.size < maxTools) annotated.set(name, found)
  }

  return {
    get known () { return known },
    learn ({ tools }) {
      if (!Array.isArray(tools)) return
      known = true
      for (const tool of tools as unknown[]) if (isObject(tool)) learnTool(tool)
    },
    headers (tool, args) {
      const found = annotated.get(tool as string)
      return found === undefined ? [] : Object.entries(headersFor(found, args)).flat()
    }
  }
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
