// What becomes of records on their way: when a tenant is removed, when they cannot be written for long, and when a crash
// has cut a line off.

import { readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { configOf, gateway, key } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { auditAlone, ok, parse, report } from './kit.ts'

t.test('a tenant that is made again has a chain of its own; the first ends after its last call', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const file = join(t.testdir(), 'audit.jsonl')
  const options = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    tenants: { other: { auth: { keys: [{ name: 'other', key: `${key}_other` }] }, upstreams: {} } },
    top: { audit: { store: false, file } }
  }
  const made = await gateway(t, options)
  const client = await legacyClient(made.url(), key)
  upstream.override(isCall('echo'), () => {}, 1)
  const call = client.request('tools/call', { name: 'up__echo', arguments: {} })
  await until('the call has reached its upstream', () => upstream.seen.some(isCall('echo')))
  const { acme, ...without } = (configOf(options) as { tenants: Record<string, unknown> }).tenants
  t.ok(acme)
  made.reload({ ...(configOf(options) as object), tenants: without })
  await call
  made.reload(configOf(options))
  await legacyClient(made.url(), key)
  await made.close()

  const text = await readFile(file, 'utf8')
  t.match(await report(text, Date.now()), { chains: 2, problems: [], notes: [] })
  const [first = '', second = ''] = [...new Set(parse(text).map(({ chain }) => chain))]
  const kinds = (of: string) =>
    parse(text)
      .filter(({ chain }) => chain === of)
      .map(({ kind }) => kind)
  t.match(first, /^acme\/.*-1$/)
  t.same(kinds(first).toSorted(), ['begin', 'call', 'change', 'end', 'session'], 'its removal is in it')
  t.match(second, /^acme\/.*-2$/)
  t.same(kinds(second).toSorted(), ['begin', 'change', 'end', 'session'], 'and its return in this one')
})

t.test('no call that must be recorded is let through once too much waits, and none of them is lost', async (t) => {
  const { held, start, begin, text, clock } = await auditAlone(t, { required: true })
  const opened = Promise.withResolvers<void>()
  const audit = await start()
  held.gate = opened.promise
  const inFlight = Array.from({ length: 100 }, () => begin(audit))
  let calls = 0
  t.throws(
    () => {
      for (; calls < 10_000; calls++) void begin(audit).end(ok)
    },
    { code: 'unavailable' }
  )
  t.ok(calls > 1_000, `${calls} calls`)
  for (const each of inFlight) void each.end(ok)
  opened.resolve()
  await audit.close()
  const records = parse(await text())
  t.equal(records.filter(({ kind }) => kind === 'call').length, calls + 100)
  t.same(
    records.filter(({ kind }) => kind === 'lost'),
    []
  )
  t.match(await report(await text(), clock.now()), { problems: [], notes: [] })
})

t.test('a write that hangs holds no call for long, and lets none through that must be recorded', async (t) => {
  const { held, start, begin, text, clock } = await auditAlone(t, { required: true })
  const opened = Promise.withResolvers<void>()
  const audit = await start()
  await begin(audit).end(ok)
  held.gate = opened.promise
  const [answered, other] = [begin(audit), begin(audit)]
  const waited = answered.end(ok)
  clock.advance(9_000)
  void other.end(ok)
  clock.advance(1_000)
  await waited
  clock.advance(1)
  t.throws(() => begin(audit), { code: 'unavailable' })
  opened.resolve()
  await until('records are written again', async () => (await text()).split('"call"').length === 4)
  await begin(audit).end(ok)
  await audit.close()
  t.equal(parse(await text()).filter(({ kind }) => kind === 'call').length, 4)
})

t.test('other calls go on, and records that are lost are counted in the log itself, before its end', async (t) => {
  const { held, start, begin, text, clock } = await auditAlone(t)
  const opened = Promise.withResolvers<void>()
  const audit = await start()
  held.gate = opened.promise
  for (let calls = 0; calls < 3_000; calls++) void begin(audit).end(ok)
  const closed = audit.close()
  opened.resolve()
  await closed
  const records = parse(await text())
  const lost = records.filter(({ kind }) => kind === 'lost').map(({ records }) => Number(records))
  t.equal(lost.length, 1)
  t.ok(Number(lost[0]) > 100, `${lost[0]} lost`)
  t.equal(records.filter(({ kind }) => kind === 'call').length, 3_000 - Number(lost[0]))
  t.equal(records.at(-1)?.kind, 'end')
  t.match(await report(await text(), clock.now()), { problems: [], notes: [] })
})

const change = { actor: 'ops', role: 'platform-admin', action: 'x', target: 'x', address: '10.0.0.1' }

/** Less than passes between two looks: a write on a busy machine must not seem to hang. */
const momentMs = 10

t.test('a file that cannot be written costs the store no record', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const { start, begin, text, clock, errors } = await auditAlone(t, { file })
  const audit = await start()
  void audit.changed({ ...change, tenant: 'acme', before: undefined, after: undefined })
  await until('the file has the first records', async () => {
    clock.advance(momentMs)
    return (await readFile(file, 'utf8').catch(() => '')).includes('"change"')
  })
  await rename(file, `${file}.1`)
  await symlink('/dev/full', file)
  const calls = async () => (await text()).split('"kind":"call"').length - 1
  for (let chunk = 1; chunk <= 4; chunk++) {
    for (let at = 0; at < 900; at++) void begin(audit).end(ok)
    await until('the store has them, and the file has refused them', async () => {
      clock.advance(momentMs)
      return (await calls()) === 900 * chunk && errors.join('').includes('cannot be written')
    })
  }
  await rm(file)
  await audit.close()
  t.equal(await calls(), 3_600)
  t.match(await report(await text(), clock.now()), { problems: [], notes: [] })
  const parts = await Promise.all([`${file}.1`, file].map((path) => readFile(path, 'utf8')))
  const inFile = await report(parts.join(''), clock.now())
  t.match(inFile.problems, [/^missing before record \d+ of acme/], 'the file says that it lacks some')
  t.match(errors.join(''), /audit records are left out.*audit records were lost/s)
})

t.test('refused requests that are not recorded are counted when the log is signed, at the latest', async (t) => {
  const { clock, start, text } = await auditAlone(t)
  const audit = await start()
  const stranger = { address: '10.0.0.1', id: '1', method: 'POST' }
  const refuse = (count: number) => {
    for (let at = 0; at < count; at++) audit.refused('acme', 'default', stranger, 'unauthenticated')
  }
  const refused = async () => parse(await text()).filter(({ kind }) => kind === 'refused')
  refuse(70)
  clock.advance(60_000)
  await until('it is signed', async () => parse(await text()).some(({ kind }) => kind === 'checkpoint'))
  t.match((await refused()).at(-1), { unrecorded: 20 })
  t.equal((await refused()).length, 51)
  // Six tokens came back in a minute.
  refuse(10)
  await audit.close()
  t.match((await refused()).at(-1), { unrecorded: 4 })
  t.equal((await refused()).length, 58)
})

t.test('a line that a crash has cut off is ended before the next record', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  await writeFile(file, '{"chain":"acme/a-1","seq":1,"prev":"","ti')
  const made = await gateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  await legacyClient(made.url(), key)
  await made.close()
  const text = await readFile(file, 'utf8')
  t.match(await report(text, Date.now()), {
    chains: 1,
    problems: [],
    notes: ['line 1 was cut off while it was written']
  })
  t.same(
    parse(text.slice(text.indexOf('\n'))).map(({ kind }) => kind),
    ['begin', 'session', 'end']
  )
})
