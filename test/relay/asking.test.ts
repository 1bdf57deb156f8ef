// What a server asks of a client, in the shape that the client of an endpoint knows.

import t from 'tap'
import type { Endpoint } from '../../src/config/snapshot.ts'
import { endpointName, tenantId, upstreamName } from '../../src/protocol/ids.ts'
import { shapeAsk } from '../../src/relay/asking.ts'

const endpoint = (...names: string[]): Endpoint =>
  ({ name: endpointName('default'), tenant: tenantId('acme'), path: '/t/acme/mcp', members: names.map((name) => ({ upstream: upstreamName(name), prefix: name })), separator: '__', instructions: undefined })

t.test('URIs in what a model is shown lead back through the endpoint', async (t) => {
  const asked = { revision: '2025-11-25', capabilities: { sampling: { tools: {} } } } as const
  const params = (link: string, embedded: string) => ({
    maxTokens: 7,
    messages: [
      { role: 'user', content: { type: 'resource_link', uri: link, name: 'n' } },
      { role: 'user', content: [{ type: 'tool_result', toolUseId: 'a', content: [{ type: 'resource_link', uri: link, name: 'n' }, { type: 'resource', resource: { uri: embedded, text: link } }] }, { type: 'text', text: link }] }
    ]
  })
  const own = params('file:///a', 'ui://app/b')
  const shape = (at: Endpoint) => shapeAsk({ method: 'sampling/createMessage', params: own }, upstreamName('one'), at, asked).params
  t.same(shape(endpoint('one')), own, 'of a single upstream they are as they were')
  const shown = shape(endpoint('one', 'two'))
  const expected = params('gatehouse://one/file:///a', 'ui://one/app/b')
  const texts = JSON.parse(JSON.stringify(expected).replaceAll('"text":"gatehouse://one/file:///a"', '"text":"file:///a"'))
  t.same(shown, texts, 'texts stay')
  t.same(shapeAsk({ method: 'sampling/createMessage', params: { ...own, includeContext: 'allServers' } }, upstreamName('one'), endpoint('one', 'two'), asked).params, { ...texts, includeContext: 'none' })
})
