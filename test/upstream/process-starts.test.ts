// When child processes may start: few at once, and tenants and callers take turns.

import t from 'tap'
import { tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { createStarts } from '../../src/upstream/stdio/starts.ts'
import { handClock } from '../kit/connector.ts'

const of = (tenant: string) => ({ name: upstreamName('files'), tenant: tenantId(tenant) })

/** Until the promises that have settled were heard of. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('so many start at once, and the next one when one of them has answered', async (t) => {
  const { waitToStart: begin } = createStarts(handClock(), 1, 2)
  const [first] = [await begin(of('acme'), 'ada'), await begin(of('acme'), 'ada')]
  let third: unknown
  void begin(of('acme'), 'ada').then((end) => (third = end))
  await turn()
  t.notOk(third)
  first()
  first()
  await turn()
  t.ok(third)
  let fourth: unknown
  void begin(of('acme'), 'ada').then((end) => (fourth = end))
  await turn()
  t.notOk(fourth, 'one that ends twice counts once')
})

t.test('a server that does not answer is not waited for longer than a moment', async (t) => {
  const clock = handClock()
  const { waitToStart: begin } = createStarts(clock, 1, 1)
  await begin(of('acme'), 'ada')
  const next = begin(of('other'), 'eve')
  clock.advance(500)
  t.type(await next, 'function')
})

t.test('tenants take turns, and so do the callers of each', async (t) => {
  const { waitToStart: begin } = createStarts(handClock(), 1)
  let end = await begin(of('acme'), 'ada')
  const order: string[] = []
  const wait = (tenant: string, caller: string): Promise<void> =>
    begin(of(tenant), caller).then((ended) => {
      order.push(caller)
      end = ended
    })
  const all = Promise.all([
    ...['ada', 'ada', 'ada', 'bob'].map((caller) => wait('acme', caller)),
    ...['eve', 'eve'].map((caller) => wait('other', caller))
  ])
  for (let n = 0; n < 6; n++) {
    end()
    await turn()
  }
  await all
  t.same(order, ['ada', 'eve', 'bob', 'eve', 'ada', 'ada'])
})

t.test('a start whose turn does not come soon is refused, with what to do', async (t) => {
  const clock = handClock()
  const { waitToStart: begin } = createStarts(clock, 1, 1)
  const outcomes = Promise.allSettled(Array.from({ length: 40 }, () => begin(of('acme'), 'ada')))
  for (let n = 0; n < 30; n++) {
    clock.advance(500)
    await turn()
  }
  const refused = (await outcomes).filter((each) => each.status === 'rejected').map((each) => each.reason as unknown)
  t.ok(refused.length >= 9 && refused.length <= 11, `${refused.length} are refused, the others had their turns`)
  t.match(refused[0], {
    code: 'too_many',
    message: /Upstream files cannot start: .* within 15 s\. Retry/,
    data: { upstream: 'files', limit: 'processStarts' }
  })
})

t.test('a start that is given up while it waits takes no turn', async (t) => {
  const { waitToStart: begin } = createStarts(handClock(), 1)
  const end = await begin(of('acme'), 'ada')
  const stop = new AbortController()
  const cancelled = begin(of('acme'), 'ada', stop.signal)
  const next = begin(of('acme'), 'ada')
  stop.abort()
  await t.rejects(cancelled, { code: 'cancelled' })
  end()
  t.type(await next, 'function')
})
