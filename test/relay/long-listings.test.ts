// Listings as long as they may be, 20,000 entries of an upstream, are read, compared and written in many turns of the
// event loop, and what is the same in two of them is the same object.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { finished } from '../../src/protocol/json-steps.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import { changedKinds } from '../../src/relay/catalog/freshness.ts'
import { createListingWatcher } from '../../src/relay/catalog/listing-watcher.ts'
import { listingText } from '../../src/relay/catalog/past/listing-text.ts'
import { keptListings, listingAt, notePast, pastOf } from '../../src/relay/catalog/past/past-listings.ts'
import { isSameJson, keepSame } from '../../src/relay/catalog/past/same-entries.ts'
import { listingKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Listing } from '../../src/upstream/listing/listing.ts'
import { testConnector } from '../kit/connector.ts'
import { listing } from '../kit/listing.ts'
import { until } from '../kit/until.ts'
import { stillClock } from './kit.ts'

const { log } = testConnector()
const owner = { tenant: 'a', caller: 'lists of x' }
/** As many as are read of each of the four lists. */
const many = 5_000

function entryOf(key: string, at: number, isReversed: boolean): JsonObject {
  const members = Object.entries({ a: { type: 'string' }, b: { type: 'number' }, c: { type: 'string' } })
  const properties = Object.fromEntries(isReversed ? members.toReversed() : members)
  return { [key]: `x:${at}`, description: 'd'.repeat(40), inputSchema: { type: 'object', properties } }
}

/** @param isReversed whether members of each entry are in the other order */
function listsOf(count: number, isReversed = false): Listing {
  const list = (key: string): JsonObject[] => Array.from({ length: count }, (_, at) => entryOf(key, at, isReversed))
  return listing({
    tools: list('name'),
    prompts: list('name'),
    resources: list('uri'),
    templates: list('uriTemplate'),
    capabilities: { tools: {}, prompts: {}, resources: {} }
  })
}

/** How many turns the event loop made meanwhile. */
async function turnsOf(run: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  count()
  await run().finally(() => (isOver = true))
  return turns
}

async function keptStore(kept: Listing) {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log })
  const note = (next: Listing, at: number): Promise<void> =>
    notePast({ store, hash: 'h', owner }, { listing: next, text: finished(listingText(next)) }, at)
  await note(kept, 1)
  await store.set(listingKey('h'), finished(listingText(kept)))
  return { store, note }
}

t.test('what says the same at the same place is the same object', async (t) => {
  const [before, again, reversed] = [listsOf(20), listsOf(20), listsOf(20, true)]
  t.equal(finished(keepSame(again, [before])).tools, before.tools, 'a whole list')
  const altered = { ...again, tools: again.tools.with(7, { name: 'other' }), prompts: again.prompts.slice(1) }
  const kept = finished(keepSame(altered, [undefined, before]))
  t.same(kept, altered)
  t.ok(kept.tools.every((entry, at) => (entry === before.tools[at]) === (at !== 7)))
  t.same(changedKinds(before, kept), new Set(['tools', 'prompts']))
  t.not(finished(keepSame(reversed, [before])).tools[0], before.tools[0], 'members in another order are another text')
  t.equal(finished(keepSame(reversed, [before, listsOf(20, true)])).tools.length, 20)
  const [one, other] = ['7e999', '8e999'].map((text) => ({ x: [(JSON as Raw).rawJSON(text)] }))
  t.notOk(isSameJson(one, other))
  t.ok(isSameJson(one, { x: [(JSON as Raw).rawJSON('7e999')] }))
})
type Raw = typeof JSON & { rawJSON(text: string): unknown }

t.test('a long listing is read, compared and counted in many turns', async (t) => {
  const memory = createMemoryAccount()
  let lists = listsOf(many)
  let told = 0
  const upstream = {
    name: 'x',
    era: 'legacy',
    revision: lists.revision,
    capabilities: lists.capabilities,
    serverInfo: lists.serverInfo,
    request: async ({ method }: { readonly method: string }) => ({
      tools: lists.tools,
      prompts: lists.prompts,
      resources: lists.resources,
      resourceTemplates: lists.templates,
      method
    })
  } as unknown as Upstream
  const watcher = createListingWatcher({
    definition: { name: 'x', tenant: 'a', hash: 'h', idleMs: 60_000 } as never,
    source: {
      memory: memory.share('a', 'lists of x'),
      connect: async () => upstream,
      touch() {},
      retryMs: () => 1_000,
      downMessage: 'down'
    },
    nextRead: async () => {},
    clock: stillClock(),
    log,
    onChange: () => told++
  })
  t.teardown(watcher.close)
  await Promise.all(watcher.pending())
  // It goes on after its answer.
  await watcher.revalidate('asked')
  const before = watcher.peek()
  t.equal(before?.templates.length, many)
  t.ok(memory.held > many * 4 * 100, 'its memory is counted')
  lists = listsOf(many)
  const turns = await turnsOf(async () => await watcher.revalidate('asked'))
  t.ok(turns > 20, `${turns} turns`)
  t.equal(told, 1)
  t.equal(watcher.peek()?.tools, before?.tools, 'it is the same')
  lists = listsOf(many, true)
  await watcher.revalidate('asked')
  await until('the change is told', () => told === 2)
})

t.test('what has changed in a long listing is found in many turns', async (t) => {
  const { store, note } = await keptStore(listsOf(many))
  const reversed = listsOf(many, true)
  const turns = await turnsOf(() => note(reversed, 2))
  t.ok(turns > 20, `${turns} turns`)
  await store.close()
})

t.test('what a long listing was is found in a step for each change of a list', async (t) => {
  const lists = listsOf(many)
  const [now, changes] = [finished(listingText(lists)), 32]
  const change = (at: number) => {
    const altered = (key: string) => ({
      came: [],
      gone: [],
      altered: [{ ...entryOf(key, at, false), title: 'before' }]
    })
    const of = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' }
    return { at: at + 2, lists: Object.fromEntries(Object.entries(of).map(([member, key]) => [member, altered(key)])) }
  }
  const past = JSON.stringify({ since: 1, changes: Array.from({ length: changes }, (_, at) => change(at)) })
  const read = (at: number) => {
    const steps = listingAt({ now, past }, at)
    for (let count = 0; ; count++) {
      const { done, value } = steps.next()
      if (done === true) return { count, value }
    }
  }
  const [last, first] = [read(changes + 2), read(1)]
  t.same(last.value?.tools, lists.tools)
  const titled = first.value?.templates.filter(({ title }) => title === 'before')
  t.equal(titled?.length, changes)
  t.ok(first.count - last.count >= 4 * changes, `${first.count - last.count} steps more`)
})

t.test('of members in another order, no more than 1,000 entries are sorted to be compared', async (t) => {
  const { store, note } = await keptStore(listsOf(300))
  await note(listsOf(300, true), 2)
  const [change, ...more] = pastOf(await keptListings(store, 'h'))?.changes ?? []
  t.same(more, [])
  t.same(Object.keys(change?.lists ?? {}), ['templates'], 'the others were compared, and are the same')
  t.same(change?.lists.templates?.altered.length, 200, 'those that come after them count as altered')
  await store.close()
})
