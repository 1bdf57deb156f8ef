// Listings read back from the store.

import t from 'tap'
import { finished } from '../../src/protocol/json-steps.ts'
import { parseListing as parseSteps } from '../../src/relay/catalog/past/listing-text.ts'
import type { Listing } from '../../src/upstream/listing/listing.ts'

const parseListing = (text: string): Listing | undefined => finished(parseSteps(text))

const whole = {
  tools: [{ name: 'x' }],
  prompts: [{ name: 'p' }],
  resources: [{ uri: 'a:b' }],
  templates: [{ uriTemplate: 'a:{b}' }],
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
  revision: '2025-11-25',
  partial: [],
  failed: []
}

t.test('what the store kept is a listing only if it looks like one throughout', async (t) => {
  t.same(parseListing(JSON.stringify(whole)), whole)
  for (const member of ['tools', 'prompts', 'resources', 'templates']) {
    for (const bad of [undefined, null, {}, 'x', [null], ['x'], [[]], [{}], [{ name: 7, uri: 7, uriTemplate: 7 }]]) {
      t.equal(parseListing(JSON.stringify({ ...whole, [member]: bad })), undefined, `${member}: ${JSON.stringify(bad)}`)
    }
  }
  t.equal(parseListing(JSON.stringify({ ...whole, capabilities: null })), undefined)
  for (const text of ['null', '7', '[]', '{}']) t.equal(parseListing(text), undefined, text)
  t.throws(() => parseListing('{'), SyntaxError)
})
