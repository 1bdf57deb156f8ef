// Keys: no two things share one, nothing secret stands in one, and the documentation names them all.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import {
  assertionKeysKey,
  auditHeadsKey,
  auditIndexKey,
  auditSegmentKey,
  auditSigningKey,
  bridgedTaskCountKey,
  bridgedTaskKey,
  consoleSessionKey,
  controlHeadKey,
  controlRequestCountKey,
  controlRequestKey,
  controlVersionKey,
  digest,
  eventsKey,
  exchangedTokenKey,
  exchangeTurnKey,
  firstIssuersKey,
  grantClientKey,
  grantEndsKey,
  grantIndexKey,
  grantKey,
  grantBegunKey,
  grantPendingKey,
  grantRenewalKey,
  grantUsedKey,
  healthKey,
  key,
  keyTable,
  limitKey,
  listingKey,
  pastListingKey,
  loginGrantKey,
  loginKey,
  principalSeatKey,
  sealKeyKey,
  dpopProofKey,
  sessionEndsKey,
  sessionHomeKey,
  sessionKeeperKey,
  sessionKeys,
  sharedToolsKey,
  sharedToolsOfKey,
  signedOutKey,
  tasksKey,
  tenantSeatKey,
  openSessionsKey,
  tenantsKey,
  upstreamSessionKey,
  upstreamSessionsKey,
  usageIndexKey,
  usageKey,
  vaultKeyKey
} from '../../src/store/keys.ts'
import { runs } from '../kit/runs.ts'

// Every string that JavaScript can hold, unpaired surrogates included, and some that attackers like.
const part = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 4 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    '',
    ':',
    'a',
    'a:b',
    'b:c',
    'c',
    '*',
    '{tag}',
    '\0',
    'A',
    'é',
    'e\u0301',
    '\ud800',
    '\udfff',
    '\ufffd',
    digest('a'),
    digest('')
  )
)
const sessionKey = (tenant: string, endpoint: string, id: string) => sessionKeys(tenant, endpoint)(id)
const kind = fc.constantFrom(...(Object.keys(keyTable) as Array<keyof typeof keyTable>))
const parts = fc.array(part, { maxLength: 4 })

t.test('two keys are equal only if kind and parts are', async (t) => {
  fc.assert(
    fc.property(kind, parts, kind, parts, (kindA, a, kindB, b) => {
      const same = kindA === kindB && a.length === b.length && a.every((part, i) => part === b[i])
      return (key(kindA, ...a) === key(kindB, ...b)) === same
    }),
    { numRuns: runs(20_000) }
  )
  t.pass()
})

t.test('a part moved, split, joined, emptied or swapped makes another key', async (t) => {
  fc.assert(
    fc.property(kind, parts, part, fc.nat(), (kind, list, extra, where) => {
      const at = where % (list.length + 1)
      const others = [
        list.toSpliced(at, 0, extra),
        [...list, ''],
        [list.join(':')],
        list.flatMap((part) => part.split(':'))
      ]
      return others.every(
        (other) =>
          (key(kind, ...other) === key(kind, ...list)) ===
          (other.length === list.length && other.every((part, i) => part === list[i]))
      )
    }),
    { numRuns: runs(5_000) }
  )
  t.pass()
})

t.test('names that look or join alike do not meet', async (t) => {
  const pairs: Array<[[string, string], [string, string]]> = [
    [
      ['a:b', 'c'],
      ['a', 'b:c']
    ],
    [
      ['a', ''],
      ['', 'a']
    ],
    [
      ['é', 'x'],
      ['e\u0301', 'x']
    ],
    [
      ['A', 'x'],
      ['a', 'x']
    ],
    [
      ['*', 'x'],
      ['a', 'x']
    ],
    [
      ['{tag}', 'x'],
      ['tag', 'x']
    ],
    [
      ['\ud800', 'x'],
      ['\ud801', 'x']
    ],
    [
      ['x'.repeat(1024), 'x'],
      ['x'.repeat(1023), 'x']
    ]
  ]
  for (const [a, b] of pairs) t.not(sessionKey(...a, 'h'), sessionKey(...b, 'h'), JSON.stringify([a, b]).slice(0, 60))
  t.equal(sessionKey('a:b', 'c', 'h'), sessionKey('a:b', 'c', 'h'), 'the same names, the same key')
})

t.test('a key is of one length and alphabet whatever the names are, and holds none of them', async (t) => {
  for (const name of ['', 'canary', '*', 'x'.repeat(1024), '\r\nFLUSHALL\r\n', '\0']) {
    t.match(sessionKey(name, name, name), /^session(:[\w-]{43}){3}$/)
    t.match(principalSeatKey(name, name, name, '7'), /^principal-seat(:[\w-]{43}){4}$/)
    t.match(listingKey(name), /^listing:[\w-]{43}$/)
    t.match(eventsKey(name, name), /^events(:[\w-]{43}){2}$/)
    t.match(tasksKey(name, name, name, name, name, name), /^tasks(:[\w-]{43}){6}$/)
    t.notOk(sessionKey(name, name, name).includes('canary'))
  }
})

t.test('the table says how many parts a key has', async (t) => {
  const made = {
    session: sessionKey('a', 'b', 'c'),
    'dpop-proof': dpopProofKey('a', 'b', 'c'),
    'session-home': sessionHomeKey('a', 'b'),
    'session-keeper': sessionKeeperKey('a', 'b'),
    'upstream-session': upstreamSessionKey('a', 'b'),
    'upstream-sessions': upstreamSessionsKey('a'),
    'session-ends': sessionEndsKey('a'),
    'open-sessions': openSessionsKey('a'),
    tenants: tenantsKey,
    'principal-seat': principalSeatKey('a', 'b', 'c', '0'),
    'tenant-seat': tenantSeatKey('a', '0'),
    listing: listingKey('a'),
    'listing-past': pastListingKey('a'),
    'shared-tools': sharedToolsKey('a'),
    'shared-tools-of': sharedToolsOfKey('a'),
    events: eventsKey('a', 'b'),
    tasks: tasksKey('a', 'b', 'c', 'd', 'e', 'f'),
    'bridged-task': bridgedTaskKey('a', 'b', 'c', 'd', 'e'),
    'bridged-task-count': bridgedTaskCountKey('a', 'b', 'c', 'd', 'e'),
    audit: auditSegmentKey('a', 'b', '0'),
    'audit-index': auditIndexKey('a'),
    'audit-heads': auditHeadsKey('a'),
    'audit-key': auditSigningKey,
    'control-head': controlHeadKey,
    'control-version': controlVersionKey('1'),
    'control-request': controlRequestKey('a', 'b'),
    'control-request-count': controlRequestCountKey('a'),
    'console-session': consoleSessionKey('a', 'b'),
    usage: usageKey('a', 'b', 'c'),
    'usage-index': usageIndexKey('a', 'b'),
    limit: limitKey('a', 'b', 'c', 'd'),
    login: loginKey('a', 'b', 'c'),
    'login-grant': loginGrantKey('a', 'b'),
    'vault-key': vaultKeyKey('a'),
    'exchanged-token': exchangedTokenKey('a', 'b'),
    'exchange-turn': exchangeTurnKey('a', 'b'),
    'assertion-keys': assertionKeysKey('a'),
    grant: grantKey('a', 'b', 'c', 'd'),
    'grant-used': grantUsedKey('a', 'b', 'c', 'd'),
    'grant-index': grantIndexKey('a'),
    'grant-ends': grantEndsKey('a'),
    'grant-client': grantClientKey('a', 'b'),
    'first-issuers': firstIssuersKey('a'),
    'grant-pending': grantPendingKey('a', 'b'),
    'grant-begun': grantBegunKey('a', 'b', 'c'),
    'grant-renewal': grantRenewalKey('a', 'b', 'c', 'd'),
    'signed-out': signedOutKey('a', 'b'),
    'seal-key': sealKeyKey,
    health: healthKey
  }
  t.same(Object.keys(made), Object.keys(keyTable))
  for (const [name, row] of Object.entries(keyTable))
    t.equal(made[name as keyof typeof made].split(':').length, row.length + 1, name)
})

t.test('docs/storage.md names every key, with its parts, and no other', async (t) => {
  const text = await readFile(join(import.meta.dirname, '../../docs/storage.md'), 'utf8')
  const start = text.indexOf('| key | value | time to live | if it is lost |')
  const rows = text.slice(start).split('\n\n')[0]?.split('\n').slice(2) ?? []
  t.same(
    rows.map((row) => row.split(' | ')[0]),
    Object.entries(keyTable).map(
      ([kind, parts]) => `| \`gatehouse:${kind}${parts.map((name) => `:{${name}}`).join('')}\``
    )
  )
})
