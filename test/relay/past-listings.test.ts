// What is kept of the past of a listing: each change, back to the oldest within the limits, and nothing that is guessed.

import t from 'tap'
import { finished } from '../../src/protocol/json-steps.ts'
import { listingText } from '../../src/relay/catalog/past/listing-text.ts'
import { keptListings, listingAt, notePast, pastOf } from '../../src/relay/catalog/past/past-listings.ts'
import { listingKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Listing } from '../../src/upstream/listing/listing.ts'
import { testConnector } from '../kit/connector.ts'

const { log } = testConnector()
const owner = { tenant: 'a', caller: 'lists of x' }

const listingOf = (...tools: Array<readonly [name: string, description: string]>): Listing => ({
  tools: tools.map(([name, description]) => ({ name, description })),
  prompts: [],
  resources: [{ uri: 'test://one' }],
  templates: [],
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
  instructions: undefined,
  revision: '2025-11-25',
  partial: [],
  failed: []
})

async function kept() {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log })
  return {
    store,
    async save(listing: Listing, at: number): Promise<void> {
      const text = finished(listingText(listing))
      await notePast({ store, hash: 'h', owner }, { listing, text }, at)
      await store.set(listingKey('h'), text)
    },
    async toolsAt(at: number): Promise<unknown> {
      const found = finished(listingAt(await keptListings(store, 'h'), at))
      return found?.tools.map(({ name, description }) => `${String(name)} ${String(description)}`).sort()
    }
  }
}

t.test('any moment since the first listing follows back from what is listed now', async (t) => {
  const { store, save, toolsAt } = await kept()
  t.equal(await toolsAt(50), undefined)
  await save(listingOf(['a', '1'], ['b', '1']), 100)
  await save(listingOf(['a', '1'], ['b', '1']), 150)
  await save(listingOf(['a', '2'], ['c', '1']), 200)
  await save(listingOf(['c', '2'], ['b', '3']), 300)
  t.same(await toolsAt(99), undefined, 'before it nothing is known')
  t.same(await toolsAt(199), ['a 1', 'b 1'])
  t.same(await toolsAt(299), ['a 2', 'c 1'])
  t.same(await toolsAt(300), ['b 3', 'c 2'])
  t.equal(finished(listingAt(await keptListings(store, 'h'), 150))?.resources.length, 1)
  t.equal(pastOf(await keptListings(store, 'h'))?.changes.length, 2, 'a listing that is the same is no change')
  await store.close()
})

t.test('of many changes the last are kept, and of one that is too large nothing before it', async (t) => {
  const { store, save, toolsAt } = await kept()
  for (let at = 1; at <= 50; at++) await save(listingOf(['a', String(at)]), at)
  t.equal(pastOf(await keptListings(store, 'h'))?.changes.length, 32)
  t.same(await toolsAt(30), ['a 30'])
  t.equal(await toolsAt(10), undefined)
  await save(listingOf(['a', 'x'.repeat(300_000)]), 60)
  t.same(await toolsAt(59), ['a 50'], 'what came need not be kept')
  await save(listingOf(['a', 'small']), 70)
  t.equal(await toolsAt(65), undefined)
  t.same(await toolsAt(70), ['a small'])
  await store.close()
})
