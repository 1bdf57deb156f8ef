// What an endpoint offers, from listings to routes. Pure.

import t from 'tap'
import fc from 'fast-check'
import pino from 'pino'
import type { Endpoint } from '../../src/config/snapshot.ts'
import { endpointName, tenantId, upstreamName, type UpstreamName } from '../../src/protocol/messages.ts'
import { createCatalogReports } from '../../src/relay/catalog/cache/catalog-reports.ts'
import { buildCatalog } from '../../src/relay/catalog/catalog.ts'
import { changedKinds } from '../../src/relay/catalog/freshness.ts'
import { finished } from '../../src/protocol/json-steps.ts'
import type { Listing } from '../../src/upstream/listing/listing.ts'
import { listing } from '../kit/listing.ts'
import { tool } from './kit.ts'
import { runs } from '../kit/runs.ts'

const endpoint = (members: Array<[upstream: string, prefix: string]>, separator = '__'): Endpoint => ({
  name: endpointName('default'),
  tenant: tenantId('acme'),
  path: '/t/acme/mcp',
  members: members.map(([upstream, prefix]) => ({ upstream: upstreamName(upstream), prefix })),
  separator,
  instructions: undefined,
  policy: undefined
})
const known = (listings: Record<string, Partial<Listing>>) =>
  new Map<UpstreamName, Listing>(Object.entries(listings).map(([name, part]) => [upstreamName(name), listing(part)]))
const names = (entries: ReadonlyArray<Record<string, unknown>>) => entries.map(({ name }) => name)

t.test('a name that two upstreams claim is that of the first, up or not, and both are reported', async (t) => {
  const members = endpoint([
    ['a', ''],
    ['b', ''],
    ['c', 'b']
  ])
  const a = { tools: [tool('x'), tool('y')], prompts: [{ name: 'w' }] }
  const others = { b: { tools: [tool('x')], prompts: [{ name: 'x' }] }, c: { tools: [tool('z'), tool('x')] } }
  const catalog = buildCatalog(members, known({ a, ...others }))
  t.same(names(catalog.lists.tools), ['x', 'y', 'b__z', 'b__x'])
  t.same(catalog.tool('x'), { upstream: 'a', name: 'x' })
  t.same(catalog.clashes, [{ name: 'x', has: 'a/x', hasNot: 'b/x' }])
  t.same(catalog.tool('b__x'), { upstream: 'c', name: 'x' })
  t.same(catalog.prompt('x'), { upstream: 'b', name: 'x' }, 'a prompt is no tool')
  const down = buildCatalog(members, known(others), known({ a }))
  t.same(names(down.lists.tools), ['b__z', 'b__x'])
  t.same(down.tool('x'), { upstream: 'a', name: 'x' }, 'nobody else gets its calls')
})

t.test('entries are made when their list is asked for, in steps', async (t) => {
  let looks = 0
  const watched = (_: unknown, at: number): object =>
    Object.defineProperty({ ...tool(`x${at}`) }, '_meta', { enumerable: true, get: () => void looks++ })
  const tools = Array.from({ length: 200 }, watched) as Array<ReturnType<typeof tool>>
  const catalog = buildCatalog(endpoint([['a', 'a']]), known({ a: { tools } }))
  t.same(catalog.tool('a__x199'), { upstream: 'a', name: 'x199' })
  t.equal(looks, 0)
  const [one, other] = [catalog.listSteps('tools', '2025-06-18'), catalog.listSteps('tools', '2025-06-18')]
  t.same(one.next(), { done: false, value: undefined })
  const looksOfOne = looks
  t.ok(looksOfOne > 0 && looksOfOne < tools.length * 2, `${looksOfOne} looks at some of ${tools.length} entries`)
  const list = finished(other)
  t.equal(list.length, tools.length)
  t.equal(finished(one), list, 'it is one list, whoever began it')
  t.equal(catalog.list('tools', '2025-06-18'), list)
})

t.test('where the listing of one member changes, the entries of the others are not made again', async (t) => {
  const members = endpoint([
    ['a', 'a'],
    ['b', 'b']
  ])
  const before = known({ a: { tools: [tool('x')] }, b: { tools: [tool('y')] } })
  const after = new Map([...before, ...known({ b: { tools: [tool('z')] } })])
  const [first, second] = [buildCatalog(members, before), buildCatalog(members, after)]
  t.same(names(second.lists.tools), ['a__x', 'b__z'])
  t.equal(second.lists.tools[0], first.lists.tools[0])
  const others = endpoint([['a', 'other']])
  t.same(names(buildCatalog(others, before).lists.tools), ['other__x'], 'each endpoint has its own')
})

t.test("a name under the prefix of another upstream is that one's, whether it is up or not", async (t) => {
  const evil = { tools: [tool('files__read'), tool('filesystem')], prompts: [{ name: 'files__ask' }] }
  const files = { tools: [tool('read')], prompts: [{ name: 'ask' }] }
  for (const order of [
    [
      ['files', 'files'],
      ['evil', '']
    ],
    [
      ['evil', ''],
      ['files', 'files']
    ]
  ] as Array<Array<[string, string]>>) {
    const down = buildCatalog(endpoint(order), known({ evil }))
    t.equal(down.tool('files__read'), undefined)
    t.equal(down.prompt('files__ask'), undefined)
    t.same(names(down.lists.tools), ['filesystem'], 'what only resembles it stays')
    t.same(down.clashes.map(({ name }) => name).sort(), ['files__ask', 'files__read'])
    const up = buildCatalog(endpoint(order), known({ evil, files }))
    t.same(up.tool('files__read'), { upstream: 'files', name: 'read' })
    t.same(up.prompt('files__ask'), { upstream: 'files', name: 'ask' })
    t.same(up.clashes.map(({ name }) => name).sort(), ['files__ask', 'files__read'], 'it is reported all the same')
  }
})

t.test('a name in the form of a shortened one is not taken by an upstream without a prefix', async (t) => {
  const long = 'create_a_very_detailed_report_of_everything'
  const members = endpoint([
    ['evil', ''],
    ['warehouse', 'warehouse-of-the-north']
  ])
  const warehouse = { tools: [tool(long), tool(`${long}_that_happened`)] }
  const shown = names(buildCatalog(members, known({ warehouse })).lists.tools).map(String)
  t.match(shown, [
    /^warehouse_?.*_[0-9a-v]{8}__create_a_very_detailed_report_of_everything$/,
    /^[0-9a-v]{8}_.*_happened$/
  ])
  const evil = { tools: [...shown, 'harmless'].map((name) => tool(name)) }
  const down = buildCatalog(members, known({ evil }))
  t.same(names(down.lists.tools), ['harmless'])
  for (const name of shown) t.equal(down.unlistedOwnerOfName('tool', name), 'warehouse')
  const up = buildCatalog(members, known({ evil, warehouse }))
  t.same(
    shown.map((name) => up.tool(name)?.upstream),
    ['warehouse', 'warehouse']
  )
  t.same(
    up.shortened.map(({ whole }) => whole),
    [`warehouse-of-the-north__${long}`, `warehouse-of-the-north__${long}_that_happened`]
  )
})

t.test('of two prefixes that a name begins with, the longer one counts', async (t) => {
  const members = endpoint([
    ['a', 'a'],
    ['ab', 'a__b']
  ])
  const a = { tools: [tool('b__x'), tool('c')] }
  t.equal(buildCatalog(members, known({ a })).tool('a__b__x'), undefined)
  t.same(names(buildCatalog(members, known({ a })).lists.tools), ['a__c'])
  const both = buildCatalog(members, known({ a, ab: { tools: [tool('x'), tool('y')] } }))
  t.same(names(both.lists.tools), ['a__c', 'a__b__x', 'a__b__y'])
  t.same(both.tool('a__b__x'), { upstream: 'ab', name: 'x' })
})

t.test('a name that its own upstream lists twice is there once', async (t) => {
  const catalog = buildCatalog(
    endpoint([['a', 'a']]),
    known({ a: { tools: [tool('x', { title: 'first' }), tool('x', { title: 'second' })] } })
  )
  t.match(catalog.lists.tools, [{ name: 'a__x', title: 'first' }])
  t.same(catalog.clashes, [])
})

t.test('an upstream that is not known is left out of the lists, and may still offer every capability', async (t) => {
  const catalog = buildCatalog(
    endpoint([
      ['a', 'a'],
      ['down', 'down']
    ]),
    known({ a: { tools: [tool('x')] } })
  )
  t.same(names(catalog.lists.tools), ['a__x'])
  t.match(catalog.capabilities, { tools: {}, prompts: {}, resources: {}, logging: {} })
  t.equal(catalog.tool('down__x'), undefined)
  t.same(
    catalog.resource('gatehouse://down/test://x'),
    { upstream: 'down', name: 'test://x' },
    'a wrapped URI says itself where it leads'
  )
})

t.test('http URIs are shared, and the first upstream that lists one serves it', async (t) => {
  const catalog = buildCatalog(
    endpoint([
      ['a', 'a'],
      ['b', 'b']
    ]),
    known({
      a: { resources: [{ uri: 'https://h/x', name: 'of a' }] },
      b: {
        resources: [
          { uri: 'https://h/x', name: 'of b' },
          { uri: 'https://h/y', name: 'of b' },
          { uri: 'test://same', name: 'b' }
        ]
      }
    })
  )
  t.same(
    catalog.lists.resources.map(({ uri, name }) => [uri, name]),
    [
      ['https://h/x', 'of a'],
      ['https://h/y', 'of b'],
      ['gatehouse://b/test://same', 'b']
    ]
  )
  t.same(catalog.resource('https://h/x'), { upstream: 'a', name: 'https://h/x', listedAs: 'https://h/x' })
  t.equal(catalog.resource('https://h/unlisted'), undefined)
})

t.test('what a reference names is a template in whatever way it is written', async (t) => {
  const listings = {
    a: { templates: [{ uriTemplate: 'item://{id}', name: 'item' }] },
    b: { resources: [{ uri: 'x://1', name: 'x' }] }
  }
  const catalog = buildCatalog(
    endpoint([
      ['a', 'a'],
      ['b', 'b']
    ]),
    known(listings)
  )
  const isTemplate = (uri: string): boolean | undefined => {
    const route = catalog.reference(uri)
    return route && catalog.isTemplate(route)
  }
  t.equal(isTemplate('gatehouse://a/item://{id}'), true)
  t.equal(isTemplate('item://{id}'), true)
  t.equal(isTemplate('gatehouse://b/x://1'), false)
})

t.test('every public name leads back to its upstream and its own name', async () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 90 })
  const part = fc.record({
    tools: fc.uniqueArray(text, { maxLength: 8 }),
    resources: fc.uniqueArray(text, { maxLength: 8 })
  })
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('a', 'b', 'c.d', 'e-f'), part, { minKeys: 2 }),
      fc.constantFrom('__', '.', '-'),
      (parts, separator) => {
        const members = Object.keys(parts)
        const catalog = buildCatalog(
          endpoint(
            members.map((name) => [name, name]),
            separator
          ),
          known(
            Object.fromEntries(
              Object.entries(parts).map(([name, { tools, resources }]) => [
                name,
                { tools: tools.map((each) => tool(each)), resources: resources.map((uri) => ({ uri, name: uri })) }
              ])
            )
          )
        )
        const shown = names(catalog.lists.tools).map(String)
        const total = Object.values(parts).reduce((sum, { tools }) => sum + tools.length, 0)
        return (
          shown.length >= total - catalog.clashes.length &&
          new Set(shown).size === shown.length &&
          shown.every((name) => {
            const route = catalog.tool(name)
            return route !== undefined && parts[route.upstream]?.tools.includes(route.name) === true
          }) &&
          catalog.lists.resources.every(({ uri }) => {
            const route = catalog.resource(String(uri))
            return route !== undefined && parts[route.upstream]?.resources.includes(route.name) === true
          })
        )
      }
    ),
    { numRuns: runs(300) }
  )
})

t.test('changes are reported by kind', async (t) => {
  const before = listing({ tools: [tool('x')] })
  t.same(changedKinds(before, before), new Set())
  t.same(changedKinds(before, listing({ tools: [tool('x')] })), new Set(), 'an equal list has not changed')
  t.same(changedKinds(before, listing({ tools: [tool('x', { title: 'X' })] })), new Set(['tools']))
  t.same(
    changedKinds(undefined, listing({ prompts: [{ name: 'p' }], templates: [{ uriTemplate: 'x' }] })),
    new Set(['prompts', 'resources'])
  )
  t.same(changedKinds(before, undefined), new Set(['tools']))
})

t.test(
  'a tool of an upstream without tasks promises none beside one that has them; alone it says what it says',
  async (t) => {
    const job = tool('job', { execution: { taskSupport: 'required' } })
    const [rich, poor] = [
      { tools: [job], capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } } },
      { tools: [job] }
    ]
    const execution = (catalog: ReturnType<typeof buildCatalog>) =>
      Object.fromEntries(catalog.lists.tools.map((shown) => [shown['name'], shown['execution']]))
    t.same(
      execution(
        buildCatalog(
          endpoint([
            ['rich', 'rich'],
            ['poor', 'poor']
          ]),
          known({ rich, poor })
        )
      ),
      { rich__job: { taskSupport: 'required' }, poor__job: {} }
    )
    t.same(execution(buildCatalog(endpoint([['poor', '']]), known({ poor }))), { job: { taskSupport: 'required' } })
  }
)

t.test(
  'of many templates at an endpoint, a bare URI is tried on 1,000: the rest of the longest lists is left out',
  async (t) => {
    const long = Array.from({ length: 12 }, (_, at) => `long-${at}`)
    const templates = (name: string, count: number) =>
      Array.from({ length: count }, (_, at) => ({ uriTemplate: `${name}://${at}/{id}`, name: `${at}` }))
    const listings = {
      short: { templates: templates('short', 4) },
      ...Object.fromEntries(long.map((name) => [name, { templates: templates(name, 150) }]))
    }
    const members = (names: string[]) => endpoint(names.map((name): [string, string] => [name, name]))
    const all = buildCatalog(members(['short', ...long]), known(listings))
    t.equal(all.matchedOfEach, 83)
    t.match(all.resource('short://3/x'), { upstream: 'short' })
    for (const name of ['long-0', 'long-11']) {
      t.match(all.resource(`${name}://82/x`), { upstream: name })
      t.equal(all.resource(`${name}://83/x`), undefined)
      t.match(all.resource(`gatehouse://${name}/${name}://83/x`), { upstream: name }, 'in the form of the lists')
    }
    const few = buildCatalog(members(long.slice(0, 10)), known(listings))
    t.equal(few.matchedOfEach, Infinity)
    t.match(few.resource('long-9://99/x'), { upstream: 'long-9' })
    const wide = Array.from({ length: 1_001 }, (_, at) => `u-${at}`)
    const each = known(Object.fromEntries(wide.map((name) => [name, { templates: templates(name, 2) }])))
    const widest = buildCatalog(members(wide), each)
    t.equal(widest.matchedOfEach, 1)
    t.match(widest.resource('u-1000://0/x'), { upstream: 'u-1000' }, 'of more upstreams, it is tried on one of each')
    t.equal(widest.resource('u-1000://1/x'), undefined)
  }
)

t.test('templates that say too little take no place of others; of an upstream 1,000 are looked at', async (t) => {
  const little = (count: number) => Array.from({ length: count }, (_, at) => ({ uriTemplate: `{x${at}}` }))
  const last = { uriTemplate: 'own://{id}' }
  const routeAfter = (count: number) =>
    buildCatalog(
      endpoint([
        ['a', 'a'],
        ['b', 'b']
      ]),
      known({ a: { templates: [...little(count), last] }, b: {} })
    ).resource('own://x')
  t.match(routeAfter(999), { upstream: 'a' })
  t.equal(routeAfter(1_000), undefined)
})

t.test('a bare URI is compared with each template once, also where the endpoint takes some away', async (t) => {
  const uriTemplate = 'alone://{id}'
  const listings = { one: { templates: [{ uriTemplate, name: 'alone' }] }, two: {} }
  const members: Array<[string, string]> = [
    ['one', 'one'],
    ['two', 'two']
  ]
  const catalog = buildCatalog({ ...endpoint(members), deny: { templates: ['one/secret://*'] } }, known(listings))
  const strings = String.prototype
  const original = Object.getOwnPropertyDescriptor(strings, 'startsWith') ?? {}
  const startsWith = original.value as (start: string, at?: number) => boolean
  let compared = 0
  t.teardown(() => Object.defineProperty(strings, 'startsWith', original))
  Object.defineProperty(strings, 'startsWith', {
    ...original,
    value(this: string, start: string, at?: number) {
      if (start === 'alone://') compared++
      return startsWith.call(this, start, at)
    }
  })
  t.same(catalog.resource('alone://x'), { upstream: 'one', name: 'alone://x', listedAs: uriTemplate })
  t.equal(compared, 1)
  compared = 0
  t.match(catalog.resource('gatehouse://one/alone://x'), { listedAs: uriTemplate }, 'in the form of the lists')
  t.equal(compared, 1)
})

t.test('the log says each thing of an endpoint once, and of names not more than a hundred', async (t) => {
  const lines: Array<Record<string, unknown>> = []
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  const report = createCatalogReports(log)
  const [one, other] = [endpoint([['a', '']]), endpoint([['b', '']])]
  const clash = (name: string, matchedOfEach = 83) => ({
    clashes: [{ name, has: 'a/x', hasNot: 'b/x' }],
    shortened: [],
    matchedOfEach
  })
  for (const at of [one, one, other]) report(at, clash('x'))
  t.match(
    lines.map(({ names, ofEachUpstream }) => names ?? ofEachUpstream),
    [[{ name: 'x' }], 83, [{ name: 'x' }], 83]
  )
  for (let at = 0; at < 200; at++) report(one, clash(`x${at}`))
  t.equal(lines.length, 103)
  const third = endpoint([['c', '']])
  for (let at = 0; at < 200; at++) report(third, clash(`x${at}`, Infinity))
  t.equal(lines.length, 203)
  report(third, clash('x', 7))
  t.match(lines.slice(203), [{ ofEachUpstream: 7 }], 'names hide no other line')
})
