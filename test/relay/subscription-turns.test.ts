// Requests about one resource on a shared connection take turns: whoever is not wanted any more gives up its turn. What
// the end of a session leaves to be said to a server does not fall upon it all at once.

import t, { type Test } from 'tap'
import { until } from '../kit/until.ts'
import { relaySetup, type Double, type Person, type RelaySetup } from './kit.ts'

interface Scene {
  readonly setup: RelaySetup
  /** How many requests of the method the server has been sent. */
  sent(method: string): number
  /** Requests that the server keeps waiting, oldest first. */
  readonly held: Array<() => void>
  hold(method: string | undefined): void
}

async function scene(t: Test, isolation = 'shared'): Promise<Scene> {
  const held: Array<() => void> = []
  let holding: string | undefined
  const double: Double = {
    capabilities: { resources: { subscribe: true } },
    resources: [{ uri: 'test://one', name: 'one' }],
    async answer({ method }, _client, signal) {
      if (method !== holding) return {}
      return await new Promise((resolve, reject) => {
        held.push(() => resolve({}))
        signal.addEventListener('abort', () => reject(new Error('cancelled at the server')))
      })
    }
  }
  const setup = await relaySetup(t, {
    doubles: { up: double },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    isolation
  })
  return {
    setup,
    held,
    sent: (method) => setup.requests(method).length,
    hold(method) {
      holding = method
    }
  }
}

const subscribe = (person: Person, uri = 'test://one', signal?: AbortSignal) =>
  person.call('resources/subscribe', { uri }, {}, signal)
const unsubscribe = (person: Person, uri = 'test://one', signal?: AbortSignal) =>
  person.call('resources/unsubscribe', { uri }, {}, signal)
/** Long enough for whatever was going to happen at once. */
const settled = async (): Promise<void> => {
  for (let n = 0; n < 10; n++)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
}

t.test('a call that is cancelled while it waits its turn ends at once, and nothing is sent for it', async (t) => {
  const { setup, held, sent, hold } = await scene(t)
  const [ada, bob, eve] = [await setup.person('ada'), await setup.person('bob'), await setup.person('eve')]
  hold('resources/subscribe')
  const first = subscribe(ada)
  await until('it is under way', () => held.length === 1)
  const over = new AbortController()
  const second = subscribe(bob, 'test://one', over.signal)
  const third = subscribe(eve)
  await settled()
  t.equal(sent('resources/subscribe'), 1, 'the others wait')
  over.abort()
  await t.rejects(second, { code: 'cancelled' })
  t.equal(held.length, 1, 'while the first one is still under way')
  held.shift()?.()
  t.same(await first, {})
  t.same(await third, {}, 'whoever came after it has its turn')
  setup.connections.at(-1)?.notify({ method: 'notifications/resources/updated', params: { uri: 'test://one' } })
  await until('both are told', () => ada.heard.length + eve.heard.length === 2)
  t.same(
    [ada, bob, eve].map(({ heard }) => heard.length),
    [1, 0, 1]
  )
  t.equal(sent('resources/subscribe'), 1)
})

t.test('of many that are cancelled nothing is left to wait for, whoever is first', async (t) => {
  const { setup, held, sent, hold } = await scene(t)
  const [ada, bob] = [await setup.person('ada'), await setup.person('bob')]
  hold('resources/subscribe')
  const over = new AbortController()
  const all = Array.from({ length: 50 }, () => subscribe(ada, 'test://one', over.signal))
  await until('one is under way', () => held.length === 1)
  over.abort()
  for (const { status } of await Promise.allSettled(all)) t.equal(status, 'rejected')
  hold(undefined)
  t.same(await subscribe(bob), {})
  t.equal(sent('resources/subscribe'), 2, 'the one that was sent, and this one')
})

t.test('a session that ends while its call waits its turn is not subscribed', async (t) => {
  const { setup, held, hold } = await scene(t)
  const [ada, bob] = [await setup.person('ada'), await setup.person('bob')]
  hold('resources/subscribe')
  const first = subscribe(ada)
  await until('it is under way', () => held.length === 1)
  const second = subscribe(bob)
  await bob.end()
  held.shift()?.()
  await t.rejects(second, { code: 'session_unknown' })
  t.same(await first, {})
})

t.test('who unsubscribes need not wait for the server: what it left is ended without it', async (t) => {
  const { setup, held, sent, hold } = await scene(t)
  const ada = await setup.person('ada')
  await subscribe(ada)
  hold('resources/unsubscribe')
  const over = new AbortController()
  const left = unsubscribe(ada, 'test://one', over.signal)
  await until('the server is told', () => held.length === 1)
  over.abort()
  await t.rejects(left, { code: 'cancelled' })
  held.shift()?.()
  hold(undefined)
  t.same(await subscribe(ada), {})
  t.equal(sent('resources/subscribe'), 2, 'and it is known to be ended')
})

t.test('at the end of a session its server is told eight at a time, and meanwhile others go on', async (t) => {
  const { setup, held, sent, hold } = await scene(t)
  const [ada, bob] = [await setup.person('ada'), await setup.person('bob')]
  const uris = Array.from({ length: 100 }, (_, n) => `test://${n}`)
  for (const uri of uris) await subscribe(ada, uri)
  hold('resources/unsubscribe')
  await ada.end()
  await until('the first are told', () => held.length === 8)
  await settled()
  t.equal(sent('resources/unsubscribe'), 8)
  t.same(await subscribe(bob, 'test://99'), {}, 'not behind the others')
  t.equal(sent('resources/subscribe'), 100, 'which the server knows still')
  let most = 0
  await until('all are told', () => {
    most = Math.max(most, held.length)
    for (const answer of held.splice(0)) answer()
    return sent('resources/unsubscribe') === 99
  })
  for (const answer of held.splice(0)) answer()
  t.equal(most, 8)
  t.notOk(
    setup.requests('resources/unsubscribe').some(({ params }) => params?.['uri'] === 'test://99'),
    'but what somebody has come for'
  )
})
