// What `verify` finds in a log, beyond a record that is altered: runs that nobody signed, records where none may be,
// and what is gone; and what it must not take for a fault.

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { createChain } from '../../src/audit/chain.ts'
import { auditPublicKey } from '../../src/audit/keys.ts'
import type { KeptHead } from '../../src/audit/segments.ts'
import { verifyAudit } from '../../src/audit/verify.ts'

const dayMs = 24 * 60 * 60 * 1000
const { privateKey, publicKey: ownKey } = generateKeyPairSync('ed25519')
const publicKey = String(ownKey.export({ format: 'jwk' }).x)
const startedAt = Date.parse('2026-11-23T06:00:00Z')

/** A run of a gateway of the tenant acme. */
function run(name: string, key = privateKey, named = publicKey) {
  const chain = createChain(`acme/${name}`, { privateKey: key, publicKey: named }, { now: () => startedAt })
  return {
    chain,
    begin: () => chain.signedRecord('begin', { retentionMs: 90 * dayMs }),
    calls: (count: number) => Array.from({ length: count }, (_, at) => chain.record('call', { ms: at })),
    end: (members = {}) => chain.signedRecord('end', members)
  }
}

async function report(
  lines: readonly string[],
  now = startedAt + 60 * 60_000,
  isTrusted = true,
  heads: readonly KeptHead[] = []
) {
  const given = (async function* all() {
    yield* lines
  })()
  return await verifyAudit(given, isTrusted ? [auditPublicKey(publicKey)] : undefined, now, { heads })
}

t.test('a whole run has no problem and no note', async (t) => {
  const { begin, calls, end } = run('a')
  t.match(await report([begin(), ...calls(3), end()]), { records: 5, signatures: 2, problems: [], notes: [] })
})

t.test('a run that somebody adds without the key is found, however well its hashes fit', async (t) => {
  const own = run('a')
  const whole = [own.begin(), own.end()]
  const forged = run('b')
  const begin = forged.chain.record('begin', { publicKey })
  const chained = [begin, ...forged.calls(2), forged.chain.record('end', {})]
  t.match((await report([...whole, ...chained])).problems, [
    /^record 1 of acme\/b is of the kind begin, and has no signature$/,
    /^record 4 of acme\/b is of the kind end, and has no signature$/,
    /^acme\/b has no valid signature: nothing vouches for its records$/
  ])
  const later = run('c')
  later.calls(9)
  const withoutFirst = later.calls(3)
  t.match((await report([...whole, ...withoutFirst])).problems, [/^acme\/c has no valid signature/])
  t.match((await report(later.calls(2))).problems, [/^acme\/c has no valid signature/])
  t.match((await report(run('d').calls(2))).problems, [
    /^record 1 of acme\/d is no first record$/,
    /no valid signature/
  ])
  const other = run('e', generateKeyPairSync('ed25519').privateKey)
  t.match((await report([other.begin(), other.end()])).problems, [/another key/, /another key/, /no valid signature/])
})

t.test('a run without its beginning and without a signature is found, also while it is young', async (t) => {
  const { calls } = run('a')
  calls(9)
  const lines = calls(3)
  for (const now of [startedAt + 30_000, startedAt + 10 * 60_000, startedAt - 10 * 60_000])
    t.match((await report(lines, now)).problems, [/^acme\/a has no valid signature/])
})

/** A run with a clock that is moved: each step is minutes later, and a record or the signature of a checkpoint. */
function runOver(steps: ReadonlyArray<readonly [minutes: number, kind: 'begin' | 'call' | 'checkpoint' | 'end']>) {
  let now = startedAt
  const chain = createChain('acme/a', { privateKey, publicKey }, { now: () => now })
  return steps.map(([minutes, kind]) => {
    now += minutes * 60_000
    return kind === 'call'
      ? chain.record('change', { action: 'policy.put' })
      : chain.signedRecord(kind, { retentionMs: 90 * dayMs })
  })
}

t.test('records that nothing vouches for are of minutes, however well somebody chains them', async (t) => {
  const begun = [
    [0, 'begin'],
    [1, 'call'],
    [0, 'checkpoint']
  ] as const
  const young = await report(runOver([...begun, [600, 'call'], [1, 'call'], [1, 'call']]))
  t.same(young.problems, [], 'a gateway that was idle, and is killed')
  t.match(young.notes, [/^nothing vouches yet for what follows record 3 of acme\/a: 3$/, /no end/])
  const spread = runOver([...begun, ...Array.from({ length: 900 }, () => [60, 'call'] as const)])
  t.match((await report(spread, startedAt + 38 * dayMs)).problems, [
    /^nothing vouches, over more than five minutes, for what follows record 3 of acme\/a: 900; a gateway signs/
  ])
  t.match((await report(runOver([...begun, [-60, 'call']]))).problems, [/^nothing vouches, over more/], 'nor before it')
})

t.test('the oldest records of a run are missed until their time is over', async (t) => {
  const lines = runOver([
    ...([
      [0, 'begin'],
      [1, 'call'],
      [1, 'call'],
      [0, 'checkpoint']
    ] as const),
    ...([
      [60, 'call'],
      [1, 'call'],
      [0, 'checkpoint'],
      [1, 'end']
    ] as const)
  ])
  t.same((await report(lines)).problems, [])
  for (const kept of [2, 3, 4, 5, 6])
    t.match((await report(lines.slice(kept), startedAt + 2 * 60 * 60_000)).problems, [
      new RegExp(`^acme/a begins with record ${kept + 1}: those before were removed before their time`)
    ])
  const late = await report(lines.slice(5), startedAt + 91 * dayMs)
  t.same([late.problems, late.notes], [[], ['acme/a begins with record 6: those before had to go, or were removed']])
  const other = run('b')
  const room = [other.begin(), other.end({ deleted: ['acme/a'] })]
  t.same((await report([...lines.slice(5), ...room])).problems, [], 'they had to make room, as another run says')
  const forged = run('c')
  const lied = [forged.begin(), forged.chain.record('call', { deleted: ['acme/a'] })]
  t.match(
    (await report([...lines.slice(5), ...lied])).problems,
    [/removed before their time/],
    'which has to be signed'
  )
})

t.test('a record after the end of its run is found', async (t) => {
  const { begin, calls, end } = run('a')
  const lines = [begin(), ...calls(1), end(), ...calls(1)]
  t.same((await report(lines)).problems, ['record 4 of acme/a comes after the end of its run'])
  t.same((await report([...lines.slice(0, 3), ...lines.slice(1, 3)])).problems, [], 'a write that was made again')
})

t.test('more records than a gateway writes without a signature are found', async (t) => {
  const { begin, calls, end } = run('a')
  t.same((await report([begin(), ...calls(1_010), end()])).problems, [])
  const { problems } = await report([...[run('b')].flatMap((b) => [b.begin(), ...b.calls(1_011), b.end()])])
  t.same(problems, ['record 1012 of acme/b and 1010 before it have no signature'])
})

t.test('what a run killed in the middle had not signed is a note, and so is a line that was cut off', async (t) => {
  const { begin, calls } = run('a')
  const lines = [begin(), ...calls(4)]
  const { problems, notes } = await report([...lines, '{"chain":"acme/a","seq":6,"prev":"abc'])
  t.same(problems, [])
  t.match(notes, [
    /^line 6 was cut off while it was written$/,
    /^nothing vouches yet for what follows record 1 of acme\/a: 4$/,
    /^acme\/a has no end/
  ])
  t.same((await report([...lines, 'anything'])).problems, ['line 6 is no record of an audit log'])
})

t.test('a run that is gone is a fault, but not where its time was over, or where it had to make room', async (t) => {
  const old = run('old')
  old.begin()
  old.end()
  const heads = [old.chain.head]
  const after = (members: object) => {
    const { begin, end } = run('new')
    return [begin(), end(members)]
  }
  const naming = after({ heads, retentionMs: 90 * dayMs })
  t.same((await report(naming)).problems, ['acme/old is missing: another run knew it with 2 records'])
  const later = await report(naming, startedAt + 91 * dayMs)
  t.same([later.problems, later.notes], [[], ['acme/old is gone: its 2 records were beyond their time']])
  const crowded = await report(after({ heads, retentionMs: 90 * dayMs, deleted: ['acme/old'] }))
  t.same([crowded.problems, crowded.notes], [[], ['acme/old is gone: its 2 records had to make room for others']])
})

t.test('no entry of the store excuses what a signed record names, and none hides what another one knows', async (t) => {
  const old = run('old')
  const lines = [old.begin(), ...old.calls(2), old.end()]
  const { begin, end } = run('new')
  const naming = [begin(), end({ heads: [old.chain.head], retentionMs: 90 * dayMs })]
  const own = { ...old.chain.head, retentionMs: 90 * dayMs, madeRoom: false }
  const { retentionMs: _, ...ofEarlierVersion } = own
  const forged: ReadonlyArray<readonly [what: string, head: KeptHead]> = [
    ['without how long it is kept', ofEarlierVersion],
    ['that it made room', { ...own, madeRoom: true }],
    ['far ahead, and made room', { ...own, seq: 1_000_000, madeRoom: true }],
    ['far ahead, and long over', { ...own, seq: 1_000_000, time: '2020-01-01T00:00:00Z' }]
  ]
  const missing = ['acme/old is missing: another run knew it with 4 records']
  for (const [what, head] of forged) {
    const { problems, notes } = await report(naming, undefined, true, [head])
    t.same(problems, missing, what)
    t.notMatch(notes.join(), /is gone/, what)
    const both = await report(naming.slice(0, 1), undefined, true, [own, head])
    t.same(
      both.problems,
      ['acme/old is missing: the gateway knew it with 4 records'],
      `${what}, against what is kept elsewhere`
    )
  }
  const cut = await report([...lines.slice(0, 2), ...naming], undefined, true, [{ ...own, seq: 2, madeRoom: true }])
  t.match(cut.problems, [/^acme\/old is cut off after record 2: another run knew 4/])
  const other = await report([...lines, ...naming], undefined, true, [{ ...own, seq: 3, hash: 'x' }])
  t.same(other.problems, ['record 3 of acme/old is not the one that the gateway knew'])
  t.same((await report([...lines, ...naming], undefined, true, [own])).problems, [], 'the control: all of it is there')
  const alone = await report(naming.slice(0, 1), undefined, true, [{ ...own, madeRoom: true }])
  t.same(alone.problems, [], 'the control: what the store alone knew may have made room')
  // A head that came to the store later, and that a run then signed.
  const { begin: begin2, end: end2 } = run('later')
  const fed = [...naming, begin2(), end2({ heads: [{ ...own, seq: 9, time: '2020-01-01T00:00:00Z', madeRoom: true }] })]
  t.match((await report(fed)).problems, [/^acme\/old is missing: another run knew it/])
})

t.test('two runs with two keys are believed without a key, and one key is not enough for both', async (t) => {
  const second = generateKeyPairSync('ed25519')
  const secondKey = String(second.publicKey.export({ format: 'jwk' }).x)
  const [one, other] = [run('a'), run('b', second.privateKey, secondKey)]
  const lines = [one.begin(), other.begin(), one.end()]
  const mixed = [...lines, other.end()]
  t.match(await report(mixed, undefined, false), { problems: [], keys: [publicKey, secondKey] })
  t.match((await report(mixed)).problems, [/record 1 of acme\/b is signed by another key/, /another key/, /no valid/])
})

t.test('a record is one line to every reader, whatever a caller sent', async (t) => {
  const { chain } = run('a')
  const name = 'a\u0085b\u2028c\u2029d\ne\rf\u000bg\u000ch'
  const line = chain.record('call', { name })
  t.notMatch(line, /[\n\v\f\r\u0085\u2028\u2029]/)
  t.same((JSON.parse(line) as { name: string }).name, name)
})

t.test('no text of a log is printed that its writer could choose', async (t) => {
  const forged = JSON.stringify({ chain: 'a/\u001b[2Jb', seq: 1, prev: '', time: '', kind: 'begin' })
  const { problems, notes, keys } = await report([forged.replace('{"chain"', '{ "chain"')])
  t.same([problems, notes, keys], [['line 1 is no record of an audit log'], [], []])
})
