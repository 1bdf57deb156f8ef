// Where the gateway goes for URLs that others wrote: public addresses only, however they are spelt.

import { createServer } from 'node:http'
import { lookup } from 'node:dns'
import { isIPv4 } from 'node:net'
import t from 'tap'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { listen } from '../kit/listen.ts'

const isRefused = (guard: ReturnType<typeof createEgressGuard>, host: string): boolean => {
  try {
    guard.check(new URL(`https://${host}/`))
    return false
  } catch {
    return true
  }
}

t.test('addresses that are not public are refused in every spelling, public ones are not', async (t) => {
  const guard = createEgressGuard()
  const special = [
    ...[
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '100.100.100.200',
      '127.0.0.1',
      '169.254.169.254',
      '172.16.0.1',
      '168.63.129.16'
    ],
    ...['192.0.0.8', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1'],
    // For documents (TEST-NET-1 to -3), and the relays that 6to4 once had.
    ...['192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1'],
    ...['127.1', '0x7f.1', '2130706433', '017700000001', '①②⑦.⓪.⓪.①', '0', '127.0.0.1.'],
    ...['[::1]', '[::]', '[::ffff:7f00:1]', '[::ffff:10.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fc00::1]'],
    ...['[fe80::1]', '[fec0::1]', '[fd00:ec2::254]', '[ff02::1]', '[2001::1]', '[2001:db8::1]', '[100::1]']
  ]
  for (const host of special) t.ok(isRefused(guard, host), host)
  for (const host of ['8.8.8.8', '1.1.1.1', '[2606:4700:4700::1111]', '[2a00:1450::1]']) t.notOk(isRefused(guard, host))
})

t.test('listed ranges may be reached, and no more than these', async (t) => {
  const guard = createEgressGuard({ allow: ['10.1.0.0/16', 'fd00:1::/32'] })
  for (const host of ['10.1.2.3', '[fd00:1::1]']) t.notOk(isRefused(guard, host), host)
  for (const host of ['10.2.0.1', '127.0.0.1', '[fd00:2::1]', '[::1]']) t.ok(isRefused(guard, host), host)
})

t.test('an address of this machine is not reached although it is public, unless its range is listed', async (t) => {
  const own = ['8.8.8.8', '2606:4700:4700::1111', 'fe80::1', '127.0.0.1']
  const resolve = () => Promise.resolve(own.map((address) => ({ address, family: isIPv4(address) ? 4 : 6 })))
  const guard = createEgressGuard({}, resolve, () => own)
  for (const host of ['8.8.8.8', '[2606:4700:4700::1111]', '[2606:4700:4700:0:0:0:0:1111]'])
    t.ok(isRefused(guard, host), host)
  for (const host of ['8.8.4.4', '[2606:4700:4700::1001]']) t.notOk(isRefused(guard, host), host)
  const addressesOf = (of: ReturnType<typeof createEgressGuard>) =>
    new Promise<unknown>((done) => {
      of.lookup(443, '')('as.example', { all: true }, (error, addresses) => done(error?.message ?? addresses))
    })
  t.match(await addressesOf(guard), /as\.example \(8\.8\.8\.8\) is no public address, or one of this machine/)
  const listed = createEgressGuard({ allow: ['8.8.8.8/32'] }, resolve, () => own)
  t.same(await addressesOf(listed), [{ address: '8.8.8.8', family: 4 }])
})

t.test('a name is judged by what it resolves to when the connection is made', async (t) => {
  let requests = 0
  const url = await listen(
    t,
    createServer((_request, response) => {
      requests++
      response.end('{}')
    })
  )
  const byName = url.replace('127.0.0.1', 'localhost')
  await t.rejects(createFetch({ guard: createEgressGuard() })(byName), { message: /is no public address/ })
  await t.rejects(createFetch({ guard: createEgressGuard() })(url), { message: /is no public address/ })
  t.equal(requests, 0)
  const allowed = createEgressGuard({ allow: ['127.0.0.0/8', '::1/128'] })
  t.equal((await createFetch({ guard: allowed })(byName)).status, 200, 'the same where the range is listed')
  t.equal((await createFetch()(byName)).status, 200, 'and where an operator wrote the URL')
})

t.test('of several addresses of a name only the public ones are given', async (t) => {
  const guard = createEgressGuard({ allow: ['127.0.0.0/8'] })
  const found = await new Promise<unknown>((resolve) =>
    guard.lookup(443, '')('localhost', { all: true }, (_error, addresses) => resolve(addresses))
  )
  const all = await new Promise<unknown[]>((resolve) => lookup('localhost', { all: true }, (_e, a) => resolve(a)))
  t.same(
    found,
    all.filter((each) => (each as { family: number }).family === 4)
  )
})

t.test('public addresses are reached at the port of https, and at those that are listed', async (t) => {
  const guard = createEgressGuard({ allow: ['10.1.0.0/16'], ports: [8443] })
  for (const port of [22, 25, 80, 2375, 6379, 8080]) {
    t.ok(isRefused(guard, `8.8.8.8:${port}`), `${port}`)
    t.ok(isRefused(guard, `[2606:4700:4700::1111]:${port}`), `${port}`)
    t.notOk(isRefused(guard, `10.1.2.3:${port}`), 'a range that is listed has all of them')
  }
  for (const place of ['8.8.8.8', '8.8.8.8:443', '8.8.8.8:8443']) t.notOk(isRefused(guard, place), place)
})
