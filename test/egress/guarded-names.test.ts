// Names of hosts that others wrote, against a real name server that never answers for some of them: they cost their
// owner, and nobody else.

import dns from 'node:dns'
import { lookup } from 'node:dns/promises'
import { createServer } from 'node:http'
import { writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { createGuardedNames } from '../../src/egress/guarded-names.ts'
import { handClock } from '../kit/connector.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { nameServer } from '../kit/name-server.ts'
import { until } from '../kit/until.ts'

const isSlow = (name: string): boolean => name.startsWith('slow')

async function setup(t: Teardown) {
  const server = await nameServer(t, (name) =>
    isSlow(name) ? undefined : name === 'none.example' ? [] : ['192.0.2.7']
  )
  const clock = handClock()
  const resolve = createGuardedNames({ servers: [server.address], clock })
  const slowOnes = (owner: string, count: number): Array<Promise<unknown>> =>
    Array.from({ length: count }, (_, n) =>
      resolve(`slow-${n}.${owner}.example`, owner).catch((error: unknown) => error)
    )
  const askedFor = (owner: string): number =>
    new Set(server.asked.filter((name) => name.endsWith(`.${owner}.example`))).size
  return { server, clock, resolve, slowOnes, askedFor }
}

const good = [{ address: '192.0.2.7', family: 4 }]

t.test('slow names hold up neither other names nor the lookups of the system', async (t) => {
  const { clock, resolve, slowOnes, askedFor } = await setup(t)
  const slow = ['a', 'b', 'c', 'd'].flatMap((owner) => slowOnes(owner, 4))
  await until('all are asked for', () => ['a', 'b', 'c', 'd'].every((owner) => askedFor(owner) === 4))
  t.same(await resolve('good.example', 'e'), good)
  t.ok((await lookup('localhost', { all: true })).length > 0)
  await t.rejects(resolve('none.example', 'e'), { code: 'ENOTFOUND' })
  clock.advance(4_000)
  for (const outcome of await Promise.all(slow)) t.match(outcome, { message: /has no address within 4 s/ })
})

t.test('names of one owner wait for each other, and are refused beyond what may wait', async (t) => {
  const { clock, resolve, slowOnes, askedFor } = await setup(t)
  const slow = slowOnes('a', 100)
  await until('the first four are asked for', () => askedFor('a') === 4)
  await t.rejects(resolve('good.a.example', 'a'), { message: /100 names of a are already/ })
  t.same(await resolve('good.b.example', 'b'), good, 'another owner waits for nothing')
  t.equal(askedFor('a'), 4)
  clock.advance(4_000)
  for (const outcome of await Promise.all(slow)) t.match(outcome, { message: /has no address within 4 s/ })
  t.equal(askedFor('a'), 4, 'whoever waited in vain asked nobody')
  t.same(await resolve('good.a.example', 'a'), good, 'all places are given back')
})

t.test('a name that many ask for at once is asked for once, and the next time anew', async (t) => {
  const { server, resolve } = await setup(t)
  const ask = () => Promise.all(Array.from({ length: 500 }, () => resolve('good.a.example', 'a')))
  t.same(new Set((await ask()).map((found) => JSON.stringify(found))), new Set([JSON.stringify(good)]))
  t.equal(server.asked.length, 1)
  await ask()
  t.equal(server.asked.length, 2)
})

t.test('who waits has a turn when one of the four is over', async (t) => {
  const { clock, resolve, slowOnes, askedFor } = await setup(t)
  const slow = slowOnes('a', 4)
  await until('they are asked for', () => askedFor('a') === 4)
  clock.advance(3_000)
  const waiting = resolve('good.a.example', 'a')
  clock.advance(1_000)
  t.same(await waiting, good)
  await Promise.all(slow)
})

t.test('the process has a bound of its own', async (t) => {
  const { clock, resolve, slowOnes } = await setup(t)
  const slow = Array.from({ length: 16 }, (_, n) => slowOnes(`o${n}`, 4)).flat()
  await t.rejects(resolve('good.example', 'z'), { message: /for 64 names/ })
  clock.advance(4_000)
  await Promise.all(slow)
  t.same(await resolve('good.example', 'z'), good)
})

t.test('names of the hosts file are known; those without a dot only where ranges are open', async (t) => {
  const hostsFile = join(t.testdir(), 'hosts')
  await writeFile(
    hostsFile,
    '# 192.0.2.1 inside.example\n192.0.2.2\tInside.example alias # inside.example\n::1 inside.example\n'
  )
  const server = await nameServer(t, () => ['192.0.2.7'])
  const [open, closed] = [true, false].map((local) =>
    createGuardedNames({ local, hostsFile, servers: [server.address] })
  )
  const written = [
    { address: '192.0.2.2', family: 4 },
    { address: '::1', family: 6 }
  ]
  t.same(await open?.('inside.example.', ''), written)
  t.same(await closed?.('inside.example', ''), written)
  t.same(await closed?.('alias', ''), [{ address: '192.0.2.2', family: 4 }])
  t.same(await closed?.('outside.example', ''), good)
  t.ok((await open?.('localhost', ''))?.length)
  t.same(await closed?.('localhost', ''), [])
  t.same(server.asked, ['outside.example'])
})

t.test('the system looks up one name at a time, whichever guard asks', async (t) => {
  const { lookup: original } = dns
  const waiting: Array<() => void> = []
  let running = 0
  const slow = (_name: string, _options: object, answer: (error: null, found: unknown) => void): void => {
    running++
    waiting.push(() => {
      running--
      answer(null, good)
    })
  }
  const put = (as: unknown): void => {
    Object.assign(dns, { lookup: as })
    syncBuiltinESMExports()
  }
  put(slow)
  t.teardown(() => put(original))
  // A module of its own, which has this lookup.
  const { href } = new URL('../../src/egress/guarded-names.ts?slow', import.meta.url)
  const own = (await import(href)) as { readonly createGuardedNames: typeof createGuardedNames }
  const asked = Array.from({ length: 5 }, (_, n) => own.createGuardedNames({ local: true })(`inside-${n}`, ''))
  for (let n = 0; n < 5; n++) {
    await until('the next is looked up', () => waiting.length > n)
    t.equal(running, 1)
    waiting[n]?.()
  }
  for (const found of await Promise.all(asked)) t.same(found, good)
})

t.test('an address of the hosts file is judged as any other', async (t) => {
  const web = createServer((_request, response) => response.end('{}'))
  const url = new URL(await listen(t, web))
  const hostsFile = join(t.testdir(), 'hosts')
  await writeFile(hostsFile, '127.0.0.1 inside.example\n')
  const server = await nameServer(t, () => [])
  const names = createGuardedNames({ hostsFile, servers: [server.address] })
  const at = `http://inside.example:${url.port}/`
  const fetchWith = (allow: string[]) => createFetch({ guard: createEgressGuard({ allow }, names) })
  await t.rejects(fetchWith([])(at), { message: /inside\.example \(127\.0\.0\.1\) is no public address/ })
  t.equal((await fetchWith(['127.0.0.1/32'])(at)).status, 200)
  t.same(server.asked, [])
})

t.test('addresses of one family do not wait long for those of the other', async (t) => {
  const six = '2001:0db8:0000:0000:0000:0000:0000:0007'
  const server = await nameServer(t, (name, family) =>
    name === `only-${family}.example` || name === 'both.example' ? (family === 4 ? ['192.0.2.7'] : [six]) : undefined
  )
  const hand = handClock()
  const waits: number[] = []
  const clock = { ...hand, timer: (ms: number, run: () => void) => (waits.push(ms), hand.timer(ms, run)) }
  const resolve = createGuardedNames({ servers: [server.address], clock })
  const bySix = [{ address: '2001:db8::7', family: 6 }]
  t.same(await resolve('both.example', ''), [...good, ...bySix], 'both, without any wait that ends')
  for (const [name, laterMs, found] of [
    ['only-4.example', 50, good],
    ['only-6.example', 1_500, bySix]
  ] as const) {
    waits.length = 0
    const asked = resolve(name, '')
    await until('one of the answers is there', () => waits.includes(laterMs))
    hand.advance(laterMs)
    t.same(await asked, found)
  }
})

t.test('the address that a name server says is judged, and is the one that is connected to', async (t) => {
  let requests = 0
  const web = createServer((_request, response) => {
    requests++
    response.end('{}')
  })
  const url = new URL(await listen(t, web))
  const server = await nameServer(t, () => [requests === 0 ? '127.0.0.1' : '127.0.0.2'])
  const guard = createEgressGuard({ allow: ['127.0.0.1/32'], servers: [server.address] })
  const fetch = createFetch({ guard, owner: 'acme' })
  const at = `http://rebinding.example:${url.port}/`
  t.equal((await fetch(at)).status, 200)
  await t.rejects(fetch(at), { message: /127\.0\.0\.2\) is no public address/ })
  t.equal(requests, 1)
  t.same(server.asked, ['rebinding.example', 'rebinding.example'])
})
