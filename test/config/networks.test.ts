// Networks, and who is behind proxies.

import t from 'tap'
import { clientAddress, networksOf, type Networks } from '../../src/config/policy/networks.ts'

const networks = (...texts: string[]): Networks => networksOf(texts) ?? (() => false)

t.test('an address is in a network, in whatever form it is written', async (t) => {
  const own = networks('10.0.0.0/8', '2001:db8::/32', '192.0.2.7')
  for (const inside of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1', '2001:0DB8:0:0::1', '192.0.2.7'])
    t.equal(own(inside), true, inside)
  for (const outside of ['11.0.0.1', '192.0.2.8', '2001:db9::1', '::1', '', 'x', '10.1.2.3.4', '10.1.2.3/8'])
    t.equal(own(outside), false, outside)
  for (const wrong of [
    '',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0/8',
    '10.0.0.0/8/8',
    '2001:db8::/129',
    'a/8',
    '10.0.0.0/-1',
    '10.0.0.0/1e1'
  ])
    t.equal(networksOf([wrong]), undefined, wrong)
})

t.test(
  'a client is the last address that is no trusted proxy, and what stands before it is not believed',
  async (t) => {
    const proxies = networks('10.0.0.0/8', 'fd00::/8')
    const cases: ReadonlyArray<readonly [string | undefined, string | undefined, string | undefined]> = [
      ['198.51.100.1', '203.0.113.7', '198.51.100.1'],
      ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
      ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
      ['10.0.0.1', '1.1.1.1, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
      ['10.0.0.1', '10.0.0.9, 203.0.113.7', '203.0.113.7'],
      ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
      ['fd00::1', '[2001:db8::7]:4711, fd00::2', '2001:db8::7'],
      ['10.0.0.1', undefined, undefined],
      ['10.0.0.1', '10.0.0.2', undefined],
      ['10.0.0.1', '203.0.113.7, unknown', undefined],
      ['10.0.0.1', '203.0.113.7,', undefined],
      [undefined, '203.0.113.7', undefined]
    ]
    for (const [peer, header, client] of cases)
      t.equal(clientAddress(peer, header, proxies), client, `${peer}, ${header}`)
  }
)
