// What an upstream lists, for tests that need no upstream.

import type { Listing } from '../../src/upstream/listing/listing.ts'

/** @param part what differs from a server of tools that has none */
export const listing = (part: Partial<Listing>): Listing => ({
  tools: [],
  prompts: [],
  resources: [],
  templates: [],
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
  instructions: undefined,
  revision: '2025-11-25',
  failed: [],
  partial: [],
  ...part
})
