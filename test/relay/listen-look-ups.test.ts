// Where the resources of a listen stream lead is looked up in steps, at its start and after each reload: for as long as
// somebody listens, and by the configuration that there is then.

import t from 'tap'
import { until } from '../kit/until.ts'
import { ackOf, type Config, type Double, listenSetup } from './listen-kit.ts'

const many = (upstream: string, count = 20) =>
  Array.from({ length: count }, (_, at) => `gatehouse://${upstream}/test://${at}`)

/** @returns upstreams, and how many connections were opened to them */
function counted() {
  let opened = 0
  const opening = async (): Promise<void> => {
    opened++
  }
  const legacy: Double = { era: 'legacy', opening }
  return { doubles: { one: { opening }, two: { opening }, three: { opening }, legacy }, opened: () => opened }
}

t.test('after a reload each stream looks its resources up in turns of the event loop', async (t) => {
  const setup = await listenSetup(t, { one: {}, two: {} })
  const uris = many('one')
  const ada = setup.listener({ resourceSubscriptions: uris })
  await until('it is acknowledged', () => ackOf(ada))
  t.same(ackOf(ada), { resourceSubscriptions: uris })
  const seen: string[] = []
  setup.onLookUp((uri) => {
    seen.push(uri)
    // More than all look-ups may have of one turn.
    const began = performance.now()
    while (performance.now() - began < 6);
  })
  setup.reload(() => {})
  t.ok(seen.length <= 1, `${seen.length} in the turn of the reload`)
  const turns: number[] = []
  for (let before = seen.length; seen.length < uris.length; before = seen.length) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    turns.push(seen.length - before)
  }
  t.ok(Math.max(...turns) <= 1, `at most ${Math.max(...turns)} in one turn`)
  t.same(seen, uris, 'each once')
  t.equal(setup.open('one').length, 1, 'and it goes on')
})

t.test('what leads elsewhere after a reload ends the stream, and what does not lets it go on', async (t) => {
  const two: Double = {}
  const setup = await listenSetup(t, { one: { resources: [{ uri: 'test://a', name: 'a' }] }, two })
  const [bare, wrapped] = [
    setup.listener({ resourceSubscriptions: ['test://a'] }),
    setup.listener({ resourceSubscriptions: ['gatehouse://one/test://a'] })
  ]
  await until('both are acknowledged', () => ackOf(bare) !== undefined && ackOf(wrapped) !== undefined)
  t.same(ackOf(bare), { resourceSubscriptions: ['test://a'] })
  two.resources = [{ uri: 'test://a', name: 'a' }]
  setup.reload(() => {})
  t.same(await bare.over, { resultType: 'complete' }, 'two servers have it now')
  t.equal(setup.open('one').length, 1)
})

t.test('a reload that comes while resources are looked up is looked at afterwards', async (t) => {
  const two: Double = {}
  const setup = await listenSetup(t, { one: { resources: [{ uri: 'test://a', name: 'a' }] }, two })
  const ada = setup.listener({ resourceSubscriptions: ['test://a', ...many('one')] })
  await until('it is acknowledged', () => ackOf(ada))
  let reloads = 0
  setup.onLookUp((uri) => {
    if (uri !== many('one')[5] || reloads++ > 0) return
    two.resources = [{ uri: 'test://a', name: 'a' }]
    setup.reload(() => {})
  })
  setup.reload(() => {})
  t.same(await ada.over, { resultType: 'complete' })
  t.equal(reloads, 1)
})

t.test('a client that leaves while its resources are looked up: no more are, and nothing is opened', async (t) => {
  const { doubles, opened } = counted()
  const setup = await listenSetup(t, doubles)
  const seen: string[] = []
  const ada = setup.listener({ resourceSubscriptions: [...many('one'), ...many('legacy')] })
  setup.onLookUp((uri) => {
    if (seen.push(uri) === 3) ada.leave()
  })
  await ada.over
  t.equal(seen.length, 3)
  t.equal(opened(), 0)
  t.same(ada.heard, [])
  setup.onLookUp(() => {})
  const staying = setup.listener({ resourceSubscriptions: [...many('one'), ...many('legacy')] })
  await until('for one that stays they are', () => ackOf(staying))
  t.equal(opened(), 2)
})

const ends: Readonly<Record<string, { change: (config: Config) => void; code: string }>> = {
  'the endpoint is removed': { change: ({ endpoints }) => delete endpoints['default'], code: 'not_found' },
  'the gateway stops': { change: () => {}, code: 'shutting_down' }
}
for (const [what, { change, code }] of Object.entries(ends)) {
  t.test(`${what} while resources are looked up: no more are, nothing is opened or promised`, async (t) => {
    const { doubles, opened } = counted()
    const setup = await listenSetup(t, doubles)
    const seen: string[] = []
    setup.onLookUp((uri) => {
      if (seen.push(uri) !== 3) return
      if (code === 'not_found') setup.reload(change)
      else setup.listen.close()
    })
    const ada = setup.listener({ resourceSubscriptions: [...many('one'), ...many('legacy')] })
    await t.rejects(ada.over, { code })
    t.equal(seen.length, 3)
    t.equal(opened(), 0)
    t.same(ada.heard, [])
  })
}

t.test('a reload while the resources of a new stream are looked up: they are, by what it says', async (t) => {
  const { doubles, opened } = counted()
  const setup = await listenSetup(t, doubles)
  let looked = 0
  setup.onLookUp(() => {
    if (++looked === 25)
      setup.reload(({ endpoints }) => {
        endpoints['default'] = { upstreams: ['one', 'three'] }
      })
  })
  const ada = setup.listener({ resourceSubscriptions: [...many('two'), ...many('one')] })
  await until('it is acknowledged', () => ackOf(ada))
  t.same(ackOf(ada), { resourceSubscriptions: many('one') })
  t.equal(opened(), 1, 'to what the endpoint has not any more, nothing is opened')
})

t.test('a reload before the upstream has answered is looked at after the acknowledgment', async (t) => {
  const two: Double = {}
  const setup = await listenSetup(t, { one: { silent: true, resources: [{ uri: 'test://a', name: 'a' }] }, two })
  const [moved, staying] = [
    setup.listener({ resourceSubscriptions: ['test://a'] }),
    setup.listener({ resourceSubscriptions: ['gatehouse://one/test://a'] })
  ]
  await until('the upstream is asked', () => setup.open('one').length === 2)
  two.resources = [{ uri: 'test://a', name: 'a' }]
  setup.reload(() => {})
  for (const leg of setup.open('one')) leg.ack()
  t.same(await moved.over, { resultType: 'complete' })
  await until('the other goes on', () => ackOf(staying))
  t.equal(setup.open('one').length, 1)
})
