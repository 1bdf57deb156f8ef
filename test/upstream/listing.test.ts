// Listings: all pages, only what is declared, and nothing that could hurt.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { fetchList, fetchListing } from '../../src/upstream/listing/listing.ts'
import { handshake, httpDefinition, never, recordingEvents, testConnector } from '../kit/connector.ts'
import { isMethod, startUpstream, type HttpUpstream, type HttpUpstreamOptions } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import type { Upstream } from '../../src/protocol/seams.ts'

async function open(t: Test, options: HttpUpstreamOptions = {}): Promise<{ upstream: Upstream; peer: HttpUpstream }> {
  const peer = await startUpstream({ stream: false, ...options })
  t.teardown(peer.close)
  const upstream = await testConnector().connector.connect(httpDefinition(peer.url), handshake, recordingEvents())
  t.teardown(() => upstream.close())
  return { upstream, peer }
}

const named = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ name: `tool-${n}`, inputSchema: { type: 'object' } }))
const methods = (peer: HttpUpstream): unknown[] => peer.server.received.map(({ method }) => method)

t.test('a listing holds all lists, with unknown members, and what the server says of itself', async (t) => {
  const { upstream } = await open(t, { instructions: 'Be kind.' })
  const listing = await fetchListing(upstream, never)
  t.match(listing, {
    capabilities: { tools: {} },
    serverInfo: { name: 'scripted' },
    instructions: 'Be kind.',
    revision: '2025-11-25',
    partial: []
  })
  t.same(listing.tools[0], {
    name: 'echo',
    description: 'the echo tool',
    inputSchema: { type: 'object' },
    'x-unknown': { kept: true }
  })
  t.same(
    listing.prompts.map(({ name }) => name),
    ['greet']
  )
  t.same(
    listing.resources.map(({ uri }) => uri),
    ['test://one', 'test://two']
  )
  t.same(
    listing.templates.map(({ uriTemplate }) => uriTemplate),
    ['test://item/{id}']
  )
})

t.test('what a server says of itself is kept up to a limit', async (t) => {
  const fits = { tools: { listChanged: true }, 'x-own': { note: 'x'.repeat(4_000) } }
  const huge = { 'x-huge': { note: 'x'.repeat(4_100) } }
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-${n}`, {}]))
  const { upstream } = await open(t, {
    name: 'n'.repeat(1_000),
    instructions: 'i'.repeat(100_000),
    capabilities: { ...fits, ...huge, ...many }
  })
  const { capabilities, instructions, serverInfo } = await fetchListing(upstream, never)
  t.match(capabilities, fits, 'positive control')
  t.notOk('x-huge' in capabilities)
  t.same([Object.keys(capabilities).length, instructions?.length, serverInfo.name.length], [32, 16_385, 256])
})

t.test('capabilities of many values are kept up to the memory that they take', async (t) => {
  const dense = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`x-${n}`, Array(500).fill(0)]))
  const { upstream } = await open(t, { capabilities: { ...dense, tools: {} } })
  const { capabilities } = await fetchListing(upstream, never)
  t.same(Object.keys(capabilities), ['x-0', 'x-1', 'tools'], 'what fits beside others that do not is kept')
})

t.test('all pages are read, in order, the empty cursor included', async (t) => {
  const { upstream, peer } = await open(t, { pageSize: 10, tools: named(95) })
  const listing = await fetchListing(upstream, never)
  t.same(listing.tools, named(95))
  const cursors = peer.server.received
    .filter(({ method }) => method === 'tools/list')
    .map(({ params }) => (params as { cursor?: string } | undefined)?.cursor)
  t.same(cursors.slice(0, 3), [undefined, '', '20'])
})

t.test('what is not declared is not asked for', async (t) => {
  const { upstream, peer } = await open(t, { capabilities: { tools: {} } })
  const listing = await fetchListing(upstream, never)
  t.ok(listing.tools.length > 0)
  t.same([listing.prompts, listing.resources, listing.templates], [[], [], []])
  t.same(
    methods(peer).filter((method) => String(method).endsWith('/list')),
    ['tools/list']
  )
})

t.test('a declared list without its method is empty', async (t) => {
  const { upstream } = await open(t, {
    errors: { 'resources/templates/list': { code: -32601, message: 'no such method' } }
  })
  t.match(await fetchListing(upstream, never), { templates: [], partial: [], resources: [{}, {}] })
})

t.test('a list that fails is noted and the others are served', async (t) => {
  const { upstream } = await open(t, { errors: { 'prompts/list': { code: -32603, message: 'database down' } } })
  const listing = await fetchListing(upstream, never)
  t.same(listing.partial, ['prompts: the server answered with error -32603'])
  t.ok(listing.tools.length > 0)
})

t.test('where every list fails, so does the listing', async (t) => {
  const error = { code: -32603, message: 'down' }
  const { upstream } = await open(t, {
    capabilities: { tools: {}, prompts: {} },
    errors: { 'prompts/list': error, 'tools/list': error }
  })
  t.match(await fetchListing(upstream, never).catch((error: unknown) => error), { error })
})

t.test('entries that cannot be offered are left out, and the rest is served', async (t) => {
  const { upstream } = await open(t, {
    tools: [
      { name: 'good' },
      { name: '' },
      {},
      null,
      'tool',
      { name: 7 },
      { name: 'x'.repeat(129) },
      { name: 'x'.repeat(128) },
      { name: 'a\0b' },
      { name: 'a\nb' },
      { name: 'a\u200bb' },
      { name: 'a\u202eb' },
      { name: '__proto__' },
      { name: 'größe_ok' }
    ],
    prompts: [{ title: 'no name' }, { name: 'p' }],
    resources: [{ name: 'no uri' }, { uri: 'r:1' }],
    templates: [{ uri: 'r:2' }, { uriTemplate: 'r:{x}' }]
  })
  const listing = await fetchListing(upstream, never)
  t.same(
    listing.tools.map(({ name }) => name),
    ['good', 'x'.repeat(128), 'größe_ok']
  )
  t.same(
    [listing.prompts, listing.resources, listing.templates],
    [[{ name: 'p' }], [{ uri: 'r:1' }], [{ uriTemplate: 'r:{x}' }]]
  )
  t.equal(listing.partial.length, 14)
  t.ok(listing.partial.includes('tools: left out an entry whose name is longer than 128 characters'))
})

t.test('a cursor that comes twice ends the list', async (t) => {
  const { upstream, peer } = await open(t, { capabilities: { tools: {} } })
  peer.override(
    ({ message }) => message?.['method'] === 'tools/list',
    (response, { message }) => {
      response.setHeader('Content-Type', 'application/json').end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          result: { tools: [{ name: 'again' }], nextCursor: 'same' }
        })
      )
    },
    1_000
  )
  const listing = await fetchListing(upstream, never)
  t.equal(listing.tools.length, 2)
  t.same(listing.partial, ['tools: stopped at a cursor that came twice'])
})

t.test('a cursor that is too long ends the list, and a shorter one does not', async (t) => {
  const { upstream, peer } = await open(t, { capabilities: { tools: {} } })
  const cursors = ['x'.repeat(8_192), 'y'.repeat(8_193)]
  peer.override(
    ({ message }) => message?.['method'] === 'tools/list',
    (response, { message }) => {
      const result = { tools: [{ name: `before-${cursors.length}` }], nextCursor: cursors.shift() }
      response
        .setHeader('Content-Type', 'application/json')
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
    },
    1_000
  )
  const { tools, partial } = await fetchListing(upstream, never)
  t.match(tools, [{ name: 'before-2' }, { name: 'before-1' }])
  t.equal(tools.length, 2)
  t.same(partial, ['tools: stopped at a cursor that is too long'])
})

t.test('pages without end are read up to a limit', async (t) => {
  const { upstream } = await open(t, { capabilities: { tools: {} }, pageSize: 1, tools: named(150) })
  const listing = await fetchListing(upstream, never)
  t.equal(listing.tools.length, 100)
  t.match(listing.partial, [/100 pages/])
})

t.test('more entries than the limit are cut off', async (t) => {
  const { upstream } = await open(t, { capabilities: { tools: {} }, tools: named(6_000) })
  const listing = await fetchListing(upstream, never)
  t.equal(listing.tools.length, 5_000)
  t.match(listing.partial, [/5000 entries/])
})

t.test('more bytes than the limit are cut off', async (t) => {
  const heavy = Array.from({ length: 12 }, (_, n) => ({ name: `t${n}`, description: 'x'.repeat(200_000) }))
  const { upstream } = await open(t, { capabilities: { tools: {} }, tools: heavy, pageSize: 1 })
  const listing = await fetchListing(upstream, never)
  t.equal(listing.tools.length, 5)
  t.match(listing.partial, [/after 5 entries/])
})

t.test('an answer without a list is no listing', async (t) => {
  const { upstream, peer } = await open(t, { capabilities: { tools: {} } })
  peer.override(
    ({ message }) => message?.['method'] === 'tools/list',
    (response, { message }) => {
      response
        .setHeader('Content-Type', 'application/json')
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { tools: {} } }))
    }
  )
  await t.rejects(fetchListing(upstream, never), { code: 'upstream_protocol', message: /tools\/list/ })
})

t.test('one kind is read again alone; resources bring their templates', async (t) => {
  const { upstream, peer } = await open(t)
  t.same(Object.keys(await fetchList(upstream, 'tools', never)), ['tools'])
  t.same(Object.keys(await fetchList(upstream, 'resources', never)).sort(), ['resources', 'templates'])
  t.same(Object.keys(await fetchList(upstream, 'prompts', never)), ['prompts'])
  t.equal(methods(peer).filter((method) => method === 'tools/list').length, 1)
})

t.test('what is left out is read too: it counts, and only so much is noted', async (t) => {
  const bad = Array.from({ length: 200 }, () => ({ description: 'no name' }))
  const many = await open(t, { capabilities: { tools: {} }, tools: [...bad, { name: 'good' }] })
  const listing = await fetchListing(many.upstream, never)
  t.same(listing.tools, [{ name: 'good' }])
  t.equal(listing.partial.length, 46)
  const flood = await open(t, { capabilities: { tools: {} }, tools: Array.from({ length: 200_000 }, () => 0) })
  const { partial } = await fetchListing(flood.upstream, never)
  t.equal(partial.length, 46)
  const both = await open(t, { capabilities: { tools: {} }, tools: [...bad, ...named(5_001)] })
  t.match(
    (await fetchListing(both.upstream, never)).partial.at(-1),
    /5000 entries/,
    'how it ended is noted all the same'
  )
  const large = await open(t, {
    capabilities: { tools: {} },
    pageSize: 1,
    tools: [{ name: 'good' }, ...Array.from({ length: 20 }, () => ({ description: 'x'.repeat(100_000) }))]
  })
  t.same((await fetchListing(large.upstream, never)).tools, [{ name: 'good' }])
  t.equal(
    large.peer.server.received.filter(({ method }) => method === 'tools/list').length,
    12,
    'and no further than 1 MiB'
  )
})

t.test('where one list fails, the others are read no further, and the memory of all is given back', async (t) => {
  const { upstream, peer } = await open(t, {
    pageSize: 50,
    resources: Array.from({ length: 5_000 }, (_, at) => ({ uri: `test://${at}` }))
  })
  const memory = createMemoryAccount()
  const read = () => fetchList(upstream, 'resources', never, undefined, memory.share('a', 'lists of x'))
  const pages = () => methods(peer).filter((method) => method === 'resources/list').length
  const refuse = async (response: ServerResponse, id: unknown): Promise<void> => {
    await until('some resources are taken', () => memory.held > 0)
    const error = { code: -32603, message: 'database down' }
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }
  peer.override(isMethod('resources/templates/list'), (response, { message }) => void refuse(response, message?.['id']))
  t.match(await read().catch((error: unknown) => error), { error: { code: -32603 } })
  t.equal(memory.held, 0)
  // As long as the rest of the first reading would take.
  t.equal((await read()).resources?.length, 5_000, 'positive control')
  t.equal(memory.held, 0)
  t.ok(pages() < 2 * 100, `${pages()} pages`)
})
