// What the Redis store says and to whom: addresses, passwords, advice to the operator.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Redis } from 'ioredis'
import type { Log } from '../../src/observe/log.ts'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { redis } from '../kit/redis.ts'
import { tcpLink } from '../kit/tcp-link.ts'
import { quiet, recorded, until } from './kit.ts'

async function open(t: Test, url: string, log: Log = quiet, clock = { now: () => Date.now() }): Promise<Store> {
  const store = await createRedisStore({ url, clock, log, heartbeatMs: 100 })
  t.teardown(() => store.close())
  return store
}

t.test('a password is used, and neither it nor a value shows in an error or in the log', async (t) => {
  const password = 's3cret:/@ word'
  const server = await redis(t, ['--requirepass', password])
  const withPassword = (text: string): string => server.url.replace('redis://', `redis://:${encodeURIComponent(text)}@`)
  const good = await open(t, withPassword(password))
  await good.set('k', 'v')
  t.equal(await good.get('k'), 'v')
  t.ok(good.live)

  const { log, text } = recorded()
  for (const url of [withPassword('wr0ng-one'), server.url]) {
    const bad = await open(t, url, log)
    t.notOk(bad.live)
    const error = await bad.set('k', 'canary-value').then(
      () => undefined,
      (error: unknown) => error as Error & { code: string }
    )
    t.equal(error?.code, 'unavailable')
    log.warn({ err: error }, 'as a border would')
    for (const canary of ['wr0ng-one', 's3cret', 'canary-value', '127.0.0.1'])
      t.notOk(`${error?.message}`.includes(canary))
  }
  t.match(text(), /WRONGPASS/)
  t.match(text(), /NOAUTH/)
  for (const canary of ['wr0ng-one', 's3cret', 'canary-value'])
    t.notOk(text().includes(canary), `${canary} is not in the log`)
})

t.test(
  'a user who may not run a command is refused, and the log names the kind of refusal without the arguments',
  async (t) => {
    const server = await redis(t, ['--user', 'reader', 'on', '>pw', '~*', '&*', '+@all', '-set', '-subscribe'])
    const { log, text } = recorded()
    const store = await open(t, server.url.replace('redis://', 'redis://reader:pw@'), log)
    const error = await store.set('canary-key', 'canary-value').then(
      () => undefined,
      (error: unknown) => error as Error
    )
    t.match(error, { code: 'unavailable', cause: { message: 'Redis: NOPERM' } })
    t.equal(await store.get('k'), undefined, 'what is allowed works')
    await store.subscribe('c', () => {})
    t.notOk(store.live, 'not live while a channel cannot be subscribed to')
    await until(() => text().includes('cannot be subscribed'))
    t.notOk(text().includes('canary'))
  }
)

t.test('a user with the commands that the documentation lists, and no others, is enough', async (t) => {
  const text = await readFile(join(import.meta.dirname, '../../docs/storage.md'), 'utf8')
  const commands = /no more than these commands:\n  `([a-z ]+)`/.exec(text)?.[1]?.split(' ') ?? []
  t.ok(commands.length > 10)
  const server = await redis(t, [
    '--user',
    'gatehouse',
    'on',
    '>pw',
    'resetchannels',
    '~gatehouse:*',
    '&gatehouse:*',
    '-@all',
    ...commands.map((command) => `+${command}`)
  ])
  const { log, lines } = recorded()
  const store = await open(t, `${server.url.replace('redis://', 'redis://gatehouse:pw@')}/1`, log)
  const heard: string[] = []
  const stop = await store.subscribe('c', (message) => {
    heard.push(message)
  })
  await store.set('k', 'v', { ttlMs: 60_000, when: 'absent' })
  t.equal(await store.get('k'), 'v')
  t.equal(await store.touch('k', 1_000), true)
  t.equal(await store.delete('k'), true)
  t.equal(await store.count('n', 1, 1_000), 1)
  const request = { capacity: 9, perMs: 1, holder: 'a', used: 0, want: 1, holdMs: 1_000, ttlMs: 1_000 }
  t.match(await store.lease('l', request), { held: 1 })
  t.match(await store.lease('l', { ...request, want: 0 }), { held: 0 })
  await store.addMember('s', 'b', { ttlMs: 1_000, from: 'a' })
  t.same(await store.members('s', { max: 9, before: 'c' }), ['b'])
  await store.removeMember('s', 'b')
  t.same(await store.members('s', { max: 9 }), [])
  await store.append('e', 'x', { ttlMs: 1_000, keep: 9 })
  t.same(await store.entries('e'), ['x'])
  t.equal(await store.set('k', 'v', { when: { is: 'other' } }), false)
  t.equal(await store.delete('k', { is: 'other' }), false)
  await store.publish('c', 'x')
  await until(() => heard.length === 1)
  await stop()
  await store.ping()
  await store.close()
  t.same(lines, [], 'nothing was forbidden on the way')

  const fewer = await redis(t, [
    '--user',
    'gatehouse',
    'on',
    '>pw',
    '~gatehouse:*',
    '&gatehouse:*',
    '-@all',
    ...commands.filter((command) => command !== 'incrby').map((command) => `+${command}`)
  ])
  const other = await open(t, fewer.url.replace('redis://', 'redis://gatehouse:pw@'))
  await t.rejects(other.count('n', 1, 1_000), { code: 'unavailable' }, 'one command less is noticed')
})

t.test('the number in the address chooses the database', async (t) => {
  const server = await redis(t)
  const [zero, two] = [await open(t, server.url), await open(t, `${server.url}/2`)]
  await two.set('k', 'of two')
  t.equal(await zero.get('k'), undefined)
  t.equal(await two.get('k'), 'of two')
})

t.test('an address that cannot be used is refused without being repeated', async (t) => {
  const server = await redis(t)
  for (const url of [
    'http://u:canary@h',
    'redis://u:canary@h/x',
    'redis://u:canary@h:99999',
    `${server.url}?password=canary`,
    'canary',
    'redis://'
  ]) {
    const error = await createRedisStore({ url, clock: Date, log: quiet }).then(
      () => undefined,
      (error: unknown) => error as Error
    )
    t.ok(error instanceof TypeError, url)
    t.match(error?.message, /must look like redis:/)
    t.notOk(JSON.stringify({ ...error, message: error?.message, stack: error?.stack }).includes('canary'))
  }
  await (await open(t, `${server.url}/0`)).ping()
})

t.test('all that is written is under gatehouse:, and counters have an end', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  await store.set('k', 'v')
  await store.count('n', 1, 60_000)
  const raw = new Redis(server.url)
  t.teardown(() => raw.disconnect())
  t.same((await raw.keys('*')).toSorted(), ['gatehouse:k', 'gatehouse:n'])
  t.ok((await raw.pttl('gatehouse:n')) > 0)
  await store.subscribe('c', () => {})
  t.same(await raw.pubsub('CHANNELS'), ['gatehouse:c'])
})

t.test(
  'the operator is warned of a Redis that evicts and of a clock that is off, and of neither where all is well',
  async (t) => {
    const warnings = async (args: readonly string[], now: () => number, expected: number): Promise<string> => {
      const server = await redis(t, args)
      const { log, lines, text } = recorded()
      const store = await open(t, server.url, log, { now })
      await until(() => lines.filter(({ level }) => level === 40).length >= expected)
      await store.ping()
      await store.ping()
      return text()
    }
    const bad = await warnings(['--maxmemory-policy', 'allkeys-lru'], () => Date.now() + 60_000, 2)
    t.match(bad, /allkeys-lru.*noeviction/)
    t.match(bad, /clocks of this machine and of Redis differ/)
    t.equal(await warnings([], () => Date.now(), 0), '')
  }
)

t.test('who leaves a channel hears what others were told that it would reach', async (t) => {
  const [server, link] = await Promise.all([redis(t), tcpLink(t)])
  const url = link.to(server.url)
  link.pass(100)
  const [leaving, other] = [await open(t, url), await open(t, server.url)]
  const heard: string[] = []
  const stop = await leaving.subscribe('c', (message) => {
    heard.push(message)
  })
  await until(() => leaving.live)
  t.equal(await other.publish('c', 'on its way'), 1)
  await stop()
  t.same(heard, ['on its way'])
  t.equal(await other.publish('c', 'too late'), 0)
})
