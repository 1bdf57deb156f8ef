// The lists to clients, page by page. The text of a long page is written once, for all who ask for it.

import { jsonSizeOf } from '../../limits/limits.ts'
import { createMemoryAccount, type HeldMemory, holdMemory } from '../../limits/memory.ts'
import { keepText } from '../../protocol/json-text.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import type { JsonObject, Result, Revision } from '../../protocol/messages.ts'
import { pageOf, unknownCursor } from '../../protocol/naming.ts'
import type { Sealer } from '../../store/seal.ts'
import { runSteps } from '../../time/turns.ts'
import { callerBindingOf, type Call } from '../call/call.ts'
import type { Catalog } from '../catalog/catalog.ts'

/** The four lists; `member` of the result holds the entries, `name` of an entry names it. */
export const lists = [
  { method: 'tools/list', list: 'tools', member: 'tools', name: 'name' },
  { method: 'prompts/list', list: 'prompts', member: 'prompts', name: 'name' },
  { method: 'resources/list', list: 'resources', member: 'resources', name: 'uri' },
  { method: 'resources/templates/list', list: 'templates', member: 'resourceTemplates', name: 'uriTemplate' }
] as const

/** Bytes, as `jsonSizeOf` counts them: a smaller page is written as fast as its text is sent. */
const smallPageBytes = 8_192

type Entries = readonly JsonObject[]

export type ListPages = ReturnType<typeof createListPages>

/** @param memory what the texts count to */
export function createListPages(sealer: Pick<Sealer, 'seal' | 'open'>, memory = createMemoryAccount()) {
  const pagesOf = new WeakMap<Entries, { readonly size: number; readonly pages: Map<number, Promise<Entries>> }>()
  // A list is collected with its catalog, and its texts with it.
  const collected = new FinalizationRegistry<HeldMemory>((held) => held.set(0))

  // Cursors are sealed to their caller, endpoint and list: to the client they are opaque
  // (server/utilities/pagination), and nobody else can use them.
  const binding = (call: Call): string[] => [...callerBindingOf(call), call.request.method]

  /** @returns the name of the entry to go on after; undefined for the first page */
  function openCursor(call: Call): string | undefined {
    const cursor = call.request.params?.['cursor']
    if (cursor === undefined) return undefined
    const opened = typeof cursor === 'string' ? sealer.open('cursor', binding(call), cursor) : undefined
    if (opened === undefined) throw unknownCursor()
    return opened
  }

  /** @returns the entries, with their text where there is memory for it */
  async function write({ tenant, endpoint }: Call, list: Entries, entries: Entries): Promise<Entries> {
    const share = memory.share(tenant.id, `lists to clients of ${endpoint.name}`)
    const text = await runSteps(longTextSteps(entries), share)
    const held = holdMemory(share)
    if (!held.take(text.length)) return entries
    collected.register(list, held)
    return keepText(entries, text)
  }

  /** @returns the same entries for all who ask for this page of the list */
  function sharedPage(call: Call, list: Entries, start: number, entries: Entries): Entries | Promise<Entries> {
    const size = call.snapshot.limits.pageSize
    const kept = pagesOf.get(list) ?? { size, pages: new Map<number, Promise<Entries>>() }
    // Cursors of earlier lists may begin anywhere. Pages that do not overlap have no more text than their list.
    if (start % size !== 0 || kept.size !== size) return entries
    const known = kept.pages.get(start)
    if (known !== undefined) return known
    if (jsonSizeOf(entries, smallPageBytes) <= smallPageBytes) return entries
    const page = write(call, list, entries)
    pagesOf.set(list, kept)
    kept.pages.set(start, page)
    return page
  }

  return {
    /** @throws GatewayError invalid_params on a cursor that was not given to this caller, or is outdated */
    async page(
      call: Call,
      { list: listName, member, name }: (typeof lists)[number],
      catalog: Catalog,
      revision: Revision
    ): Promise<Result> {
      const steps = catalog.listSteps(listName, revision)
      // A short list, and one that is there, wait for no other work.
      const first = steps.next()
      const owner = { tenant: call.tenant.id, caller: `lists to clients of ${call.endpoint.name}` }
      const list = first.done === true ? first.value : await runSteps(steps, owner)
      const { pageSize } = call.snapshot.limits
      const { entries, start, last } = pageOf(list, openCursor(call), pageSize, (entry) => String(entry[name]))
      const page = { [member]: await sharedPage(call, list, start, entries) }
      return last === undefined ? page : { ...page, nextCursor: sealer.seal('cursor', binding(call), last) }
    }
  }
}
