// `list_changed` costs its sender nothing: however many come, the lists are read one at a time, after a few once a
// second, and never too seldom.

import t from 'tap'
import pino from 'pino'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import { readBurst } from '../../src/relay/catalog/freshness.ts'
import { createOwnLists } from '../../src/relay/catalog/own-lists.ts'
import { listing } from '../kit/listing.ts'
import { until } from '../kit/until.ts'
import { relaySetup, stillClock, tool, type Connection, type Double, type Person, type RelaySetup } from './kit.ts'

const toolsOf = async (person: Person) =>
  ((await person.call('tools/list'))['tools'] as Array<{ name: string }>).map(({ name }) => name)
const asked = (connection: Connection | undefined): number =>
  connection?.requests.filter(({ method }) => method === 'tools/list').length ?? 0
const ownOf = ({ connections }: RelaySetup): Connection | undefined =>
  connections.find(({ requests }) => requests.some(({ method }) => method === 'tools/call'))
const watching = ({ connections }: RelaySetup): Connection | undefined =>
  connections.find(({ requests }) => requests.some(({ method }) => method === 'prompts/list'))

t.test(
  "a thousand changes that a session's own connection reports are two readings, and the last change is seen",
  async (t) => {
    const clock = stillClock()
    let reading = 0
    let most = 0
    const one: Double = { tools: [tool('x')], answer: () => ({}) }
    const setup = await relaySetup(t, { doubles: { one }, clock })
    const ada = await setup.person()
    await ada.call('tools/call', { name: 'one__x' })
    const hers = ownOf(setup)
    const held = Promise.withResolvers<void>()
    one.listing = async () => {
      most = Math.max(most, ++reading)
      await held.promise
      reading--
    }
    hers?.listChanged('tools')
    await until('it is being read', () => asked(hers) === 1)
    for (let n = 0; n < 1_000; n++) hers?.listChanged('tools')
    one.tools = [tool('x'), tool('last')]
    held.resolve()
    await until('she sees the last change', async () => (await toolsOf(ada)).length === 2)
    t.equal(asked(hers), 2)
    t.equal(most, 1, 'one at a time')
    t.notOk(clock.waits.includes(1_000), 'and nothing waits')

    for (let n = 3; n <= 1 + readBurst; n++) {
      hers?.listChanged('tools')
      await until('a few are read at once', () => asked(hers) === n)
      await until('and known', () => reading === 0)
    }
    one.tools = [tool('x')]
    hers?.listChanged('tools')
    await until('the next change waits for its second', () => clock.waits.includes(1_000))
    clock.move(1_000)
    await until('and is seen too', async () => (await toolsOf(ada)).length === 1)
  }
)

t.test(
  'a server that reports a change with every answer is read once a second after the first few, and others are served meanwhile',
  async (t) => {
    const clock = stillClock()
    const one: Double = { tools: [tool('x')], listing: (_request, connection) => connection.listChanged('tools') }
    const setup = await relaySetup(t, { doubles: { one }, clock })
    const ada = await setup.person()
    t.same(await toolsOf(ada), ['one__x'])
    const listing = watching(setup)
    for (let n = 1; n <= 3; n++) {
      await until('it waits for the next second', () => clock.waits.includes(1_000))
      t.equal(asked(listing), n + readBurst)
      one.tools = [tool('x'), tool(`y${n}`)]
      clock.move(1_000)
      await until('the change is seen', async () => (await toolsOf(ada)).includes(`one__y${n}`))
    }
    one.listing = () => {}
    clock.move(1_000)
    await until('it rests', () => !clock.waits.includes(1_000))
  }
)

t.test('the more a server lists, the less often it is read again, and the last change is seen', async (t) => {
  const clock = stillClock()
  const many = Array.from({ length: 3_000 }, (_, n) => tool(`x${n}`))
  const one: Double = { tools: many, listing: (_request, connection) => connection.listChanged('tools') }
  const setup = await relaySetup(t, { doubles: { one }, clock })
  const ada = await setup.person()
  t.equal((await toolsOf(ada)).length, 1_000, 'a page')
  const listing = watching(setup)
  await until('it is read again at once, and then waits', () => clock.waits.includes(1_000))
  clock.move(1_000)
  await until('it waits for a second for each thousand tools', () => clock.waits.includes(3_000))
  const before = asked(listing)
  one.tools = [tool('last')]
  one.listing = () => {}
  clock.move(3_000)
  await until('she sees the last change', async () => (await toolsOf(ada)).join() === 'one__last')
  t.equal(asked(listing), before + 1)
})

t.test('a session with a list of its own sees the changes of the other lists', async (t) => {
  const one: Double = { tools: [tool('x')], prompts: [{ name: 'old' }], answer: () => ({}) }
  const setup = await relaySetup(t, { doubles: { one } })
  const ada = await setup.person()
  await ada.call('tools/call', { name: 'one__x' })
  const prompts = async (): Promise<unknown> =>
    ((await ada.call('prompts/list'))['prompts'] as Array<{ name: string }>).map(({ name }) => name)
  t.same(await prompts(), ['one__old'])

  one.tools = [tool('x'), tool('hers')]
  ownOf(setup)?.listChanged('tools')
  await until('she has tools of her own', async () => (await toolsOf(ada)).includes('one__hers'))
  const before = ada.heard.length
  one.prompts = [{ name: 'new' }]
  one.tools = [tool('x')]
  watching(setup)?.listChanged('prompts')
  watching(setup)?.listChanged('tools')
  await until('she hears of the prompts', () =>
    ada.heard.slice(before).some(({ method }) => method === 'notifications/prompts/list_changed')
  )
  t.same(await prompts(), ['one__new'])
  t.same(await toolsOf(ada), ['one__x', 'one__hers'], 'the tools are those of her own connection')
})

t.test('a list of a session for which there is no memory is not kept', async (t) => {
  const setup = await relaySetup(t, { doubles: { one: {} } })
  const definition = [...setup.snapshot.tenants.values()][0]?.upstreams.values().next().value
  if (definition === undefined) throw new Error('no upstream')
  const account = createMemoryAccount(1024 * 1024)
  const others = holdMemory(account.share('others', 'x'))
  /** What others take as soon as the list was read. */
  let taken = 0
  const peek = () => {
    others.set(taken)
    return listing({ capabilities: { tools: {} } })
  }
  const told: unknown[] = []
  const owner = {
    key: 'a',
    memory: { share: account.share('a', 'x') },
    listsChanged: (kinds: Iterable<unknown>) => told.push([...kinds])
  }
  const lines: string[] = []
  const ownLists = createOwnLists(
    { recheckView() {}, peek, last: peek },
    stillClock(),
    pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
  )
  let tools = [tool('x')]
  const upstream = {
    era: 'legacy',
    capabilities: { tools: {} },
    request: async () => ({ tools })
  } as unknown as Upstream
  async function change(): Promise<void> {
    ownLists.changed(owner, undefined, definition as UpstreamDefinition, upstream, 'tools', 'server')
    await Promise.all(ownLists.pending(owner.key))
  }
  const toolsOfOwner = () => ownLists.lists.get(owner.key)?.get(definition.hash)?.parts.get('tools')?.tools
  await change()
  t.same(toolsOfOwner(), [tool('x')])
  const before = account.held
  t.ok(before > 0)
  tools = [tool('x'), tool('y')]
  taken = 1024 * 1024
  await change()
  t.same(toolsOfOwner(), [tool('x')], 'it keeps the one before')
  t.same(told, [['tools']])
  t.match(lines.join(), /would need more memory/)
  others.set((taken = 0))
  await change()
  t.same(toolsOfOwner(), tools)
  ownLists.forget(owner.key)
  t.equal(account.held, 0)
})

t.test('changes that a server reports to many sessions at once are read at the rate of the upstream', async (t) => {
  const clock = stillClock()
  const nothing = listing({ capabilities: {} })
  const ownLists = createOwnLists(
    { recheckView() {}, peek: () => nothing, last: () => nothing },
    clock,
    pino({ level: 'silent' })
  )
  const { share } = createMemoryAccount()
  const read: string[] = []
  const report = (name: string, count: number): void => {
    const definition = { hash: name, tenant: 'acme', name } as UpstreamDefinition
    const upstream = {
      era: 'legacy',
      capabilities: { tools: {} },
      request: async () => {
        read.push(name)
        return { tools: [tool('x')] }
      }
    } as unknown as Upstream
    for (let n = 0; n < count; n++) {
      const owner = { key: `${name}${n}`, memory: { share: share('acme', 'x') }, listsChanged() {} }
      ownLists.changed(owner, undefined, definition, upstream, 'tools', 'server')
    }
  }
  report('one', 500)
  await until('the first are read', () => read.length >= 300)
  report('two', 1)
  await until('those of another upstream do not wait for them', () => read.includes('two'))
  t.equal(read.filter((name) => name === 'one').length, 300)
  ownLists.forget('one499')
  clock.move(1_000)
  await until('more are read', () => read.length >= 401)
  clock.move(10_000)
  await until('and all in the end', () => read.length >= 500)
  t.notOk(clock.waits.length > 0, 'nothing waits any more')
  t.notOk(ownLists.has('one499', 'one', 'tools'), 'but not for a session that has ended')
  t.equal(read.length, 500)
})

t.test('a list that is read while its session ends is forgotten', async (t) => {
  const clock = stillClock()
  const setup = await relaySetup(t, { doubles: { one: { tools: [tool('x')] } }, clock })
  const [ada, bob] = [await setup.person('ada'), await setup.person('bob')]
  const definition = [...setup.snapshot.tenants.values()][0]?.upstreams.values().next().value
  if (definition === undefined) throw new Error('no upstream')
  const nothing = listing({ capabilities: {} })
  const sessionLists = createOwnLists(
    { recheckView() {}, peek: () => nothing, last: () => nothing },
    clock,
    pino({ level: 'silent' })
  )
  const answer = Promise.withResolvers<{ tools: unknown[] }>()
  const upstream = {
    id: 'one',
    name: definition.name,
    era: 'legacy' as const,
    revision: '2025-11-25' as const,
    capabilities: { tools: {} },
    serverInfo: { name: 'x', version: '1' },
    instructions: undefined,
    request: () => answer.promise,
    notify() {},
    close: () => Promise.resolve(),
    destroy() {}
  }
  for (const { live } of [ada, bob]) sessionLists.changed(live, undefined, definition, upstream, 'tools', 'server')
  sessionLists.forget(ada.live.key)
  answer.resolve({ tools: [tool('x')] })
  await until('the other one has it', () => sessionLists.has(bob.live.key, definition.hash, 'tools'))
  t.notOk(sessionLists.has(ada.live.key, definition.hash, 'tools'))
})

t.test('calls that began before a reload do not watch a removed upstream again', async (t) => {
  const clock = stillClock()
  const one: Double = { tools: [tool('x')] }
  const setup = await relaySetup(t, { doubles: { one }, clock, limits: { coldStartMs: 60_000 } })
  const hashes = new Set(
    [...setup.snapshot.tenants.values()].flatMap(({ upstreams }) => [...upstreams.values()].map(({ hash }) => hash))
  )
  const ada = await setup.person()
  t.same(await toolsOf(ada), ['one__x'])
  setup.relay.retain(hashes)
  t.same(await toolsOf(ada), ['one__x'], 'what is still named stays')
  const open = setup.connections.length
  setup.relay.retain(new Set())
  t.same(await toolsOf(ada), [], 'the old call gets its answer')
  t.equal(setup.connections.length, open)
  setup.relay.retain(hashes)
  t.same(await toolsOf(ada), ['one__x'], 'named again, it is there again')
})

t.test('a reading that fails after its definition was removed is not tried again', async (t) => {
  for (const gone of [false, true]) {
    const clock = stillClock()
    const held = Promise.withResolvers<void>()
    const one: Double = { tools: [tool('x')], listing: () => held.promise }
    const setup = await relaySetup(t, { doubles: { one }, clock })
    const ada = await setup.person()
    const listed = toolsOf(ada)
    await until('it is being read', () => setup.requests('tools/list').length === 1)
    if (gone) setup.relay.retain(new Set())
    held.reject(new Error('it failed'))
    t.same(await listed, [])
    if (gone) await new Promise(setImmediate)
    else
      await until('the failure is told', () => setup.log.some(({ msg }) => String(msg).startsWith('upstream is down')))
    t.equal(
      clock.waits.some((ms) => ms === 2_000),
      !gone,
      gone ? 'nothing is tried' : 'while one that is still named is'
    )
  }
})
