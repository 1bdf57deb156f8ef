// The audit log, from the wire to its records: who is in them, what was decided, and that nothing is missing.

import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { auditPublicKey } from '../../src/audit/keys.ts'
import { readAudit } from '../../src/audit/segments.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { wallClock } from '../../src/time/clock.ts'
import pino from 'pino'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { acmeGateway, keyOf, type AcmeGatewayOptions } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until, type Teardown } from '../kit/until.ts'
import { isCall } from '../kit/upstream.ts'
import { type AuditRecord, recordsIn } from './kit.ts'

async function folder(t: Teardown): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'audit-'))
  t.teardown(() => rm(path, { recursive: true }))
  return path
}

/** A gateway that writes its records to a file. */
async function audited(t: Teardown, options: AcmeGatewayOptions & { log?: object; file?: string; more?: object } = {}) {
  const { log = {}, more = {}, file = join(await folder(t), 'audit.jsonl'), ...rest } = options
  const acme = await acmeGateway(t, { ...rest, top: { audit: { store: false, file, ...log }, ...more } })
  const text = (): Promise<string> => readFile(file, 'utf8').catch(() => '')
  return {
    acme,
    file,
    text,
    records: (): Promise<AuditRecord[]> => recordsIn(file)
  }
}

const report = async (text: string, key?: string) =>
  await verifyAudit(
    (async function* lines() {
      yield* text.split('\n')
    })(),
    key === undefined ? undefined : [auditPublicKey(key)],
    Date.now()
  )

const policy = {
  default: 'allow',
  rules: [
    { name: 'no-slow', effect: 'deny', what: { names: ['slow'] } },
    { name: 'short', effect: 'deny', when: 'size(args.text) > 20', what: { kinds: ['tool'] } }
  ]
}

t.test('each call, refusal and session of both eras is one record, in its order, signed and whole', async (t) => {
  const { acme, records, text } = await audited(t, { policy })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const call = (name: string, args: object) => client.request('tools/call', { name, arguments: args })
  t.match(await call('echo', { text: 'hello' }), { json: { result: {} } })
  await call('echo', { text: 'a text that is longer than the policy allows' })
  await call('slow', {})
  await call('nobody-has-it', {})
  const token = await acme.bearer('JWT', 'bob')
  await modernRequest(acme.url(), 'tools/call', { name: 'echo', arguments: { text: 'hello' } }, { token })
  t.equal((await send(acme.url(), { headers: { authorization: 'Bearer nobody' }, body: '{}' })).status, 401)
  t.equal((await send(acme.url(), { method: 'DELETE', headers: client.headers })).status, 204)
  await acme.close()

  const of = (kind: string) => records().then((all) => all.filter((record) => record.kind === kind))
  t.match(await of('session'), [
    {
      action: 'opened',
      by: { kind: 'key', name: 'ada' },
      from: '127.0.0.1',
      endpoint: 'default',
      revision: '2025-11-25'
    },
    { action: 'ended', by: { kind: 'key', name: 'ada' } }
  ])
  const echo = { method: 'tools/call', name: 'echo', upstream: 'up', original: 'echo' }
  t.match(await of('call'), [
    {
      ...echo,
      by: { kind: 'key', name: 'ada' },
      decision: 'allowed',
      allowedBy: ['default'],
      outcome: 'ok',
      from: '127.0.0.1',
      bytes: Number
    },
    { ...echo, decision: 'denied', rule: 'short', allowedBy: undefined, outcome: 'refused_by_policy' },
    // The caller is told that there is no such tool; the record says why.
    { name: 'slow', upstream: 'up', original: 'slow', decision: 'denied', rule: 'no-slow', outcome: 'denied' },
    { name: 'nobody-has-it', decision: 'allowed', outcome: 'invalid_params', rule: undefined },
    { ...echo, by: { kind: 'token', issuer: acme.issuer.issuer, subject: 'bob', client: 'app-of-bob' }, outcome: 'ok' }
  ])
  t.match(await of('refused'), [{ decision: 'denied', outcome: 'unauthenticated', from: '127.0.0.1', http: 'POST' }])

  const all = await text()
  for (const secret of [keyOf.ada, client.sessionId, 'hello', 'Bearer'])
    t.notOk(all.includes(secret), 'no secret, no argument')
  const { publicKey } = acme.log.find(({ msg }) => msg === 'audit records are signed by this key') ?? {}
  t.match(await report(all, String(publicKey)), { records: 10, chains: 1, signatures: 2, problems: [], notes: [] })
  const [, another] = [publicKey, 'A'.repeat(43)]
  t.match(await report(all, another), {
    problems: [/signed by another key/, /signed by another key/]
  })
})

t.test('a record of a denied call says which limit it is beyond, or which scopes its caller needs', async (t) => {
  const { acme, records } = await audited(t, {
    callLimits: { once: { perDay: 1, what: { names: ['pid'] } }, alone: { concurrent: 1, what: { names: ['echo'] } } },
    policy: {
      default: 'allow',
      rules: [{ name: 'env', effect: 'requires', what: { names: ['env'] }, scopes: ['a:b'] }]
    }
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const call = (name: string) => client.request('tools/call', { name, arguments: {} })
  for (const name of ['pid', 'pid', 'env']) await call(name)
  const held = Promise.withResolvers<void>()
  acme.upstream.override(
    isCall('echo'),
    (response, { message }) => {
      void held.promise.then(() => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { content: [] } }))
      })
    },
    1
  )
  const running = call('echo')
  await until('it runs', () => acme.upstream.seen.some(isCall('echo')))
  await call('echo')
  held.resolve()
  await running
  await acme.close()
  const none = { limit: undefined, scopes: undefined }
  t.match(
    (await records()).filter(({ kind }) => kind === 'call'),
    [
      { name: 'pid', decision: 'allowed', ...none },
      { name: 'pid', decision: 'denied', outcome: 'quota_exceeded', ...none, limit: 'once' },
      { name: 'env', decision: 'denied', outcome: 'insufficient_scope', ...none, scopes: ['a:b'] },
      { name: 'echo', decision: 'denied', outcome: 'too_many', ...none, limit: 'alone' },
      { name: 'echo', decision: 'allowed', ...none }
    ]
  )
})

t.test('whatever is altered, removed, inserted or put in another order is found', async (t) => {
  const { acme, text } = await audited(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  for (let n = 0; n < 5; n++) await client.request('tools/call', { name: 'echo', arguments: { text: `${n}` } })
  await acme.close()
  const lines = (await text()).trimEnd().split('\n')
  const problems = async (changed: readonly string[]) => (await report(changed.join('\n'))).problems.length
  t.equal(await problems(lines), 0)
  t.equal(await problems([...lines.slice(0, 4), ...lines.slice(1, 4), ...lines.slice(4)]), 0, 'a write that came twice')
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const others = (replaced: string[]) => [...lines.slice(0, at), ...replaced, ...lines.slice(at + 1)]
    t.ok(
      (await problems(
        others([line.replace('127.0.0.1', '127.0.0.2').replace('"end"', '"END"').replace('"begin"', '"BEGIN"')])
      )) > 0,
      `${at} altered`
    )
    // Of a log that begins later than its chain, the older records may be beyond their time.
    if (at > 0 && at < lines.length - 1) t.ok((await problems(others([]))) > 0, `${at} removed`)
    if (at > 0)
      t.ok((await problems(others([lines[at - 1]?.replace('"seq":', '"seq":1') ?? '', line]))) > 0, `${at} inserted`)
  }
  t.ok((await problems(lines.toReversed())) > 0)
  const cut = await report(lines.slice(0, -1).join('\n'))
  t.match(cut.problems, [])
  t.match(cut.notes, [/nothing vouches/, /has no end: its gateway runs, was killed/], 'it may still run')
})

t.test('what is cut off, or a whole run that is removed, is missed by the runs after it', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: wallClock, log: pino({ level: 'silent' }) })
  const kept: Store = { ...store, close: async () => {} }
  t.teardown(() => store.close())
  async function run(): Promise<void> {
    const { acme } = await audited(t, { log: { store: true }, overrides: { store: kept } })
    const client = await legacyClient(acme.url(), keyOf.ada)
    await client.request('tools/call', { name: 'echo', arguments: {} })
    await acme.close()
  }
  await run()
  await run()
  const lines: string[] = []
  for await (const batch of readAudit(store, 'acme')) lines.push(...batch.trimEnd().split('\n'))
  t.match(await report(lines.join('\n')), { chains: 2, problems: [], notes: [] })
  const first = lines.filter((line) => line.startsWith(lines[0]?.slice(0, 30) ?? '-'))
  t.equal(first.length, lines.length / 2)
  t.match((await report(lines.filter((line) => line !== first.at(-1)).join('\n'))).problems, [
    /is cut off after record 3/
  ])
  t.match((await report(lines.slice(first.length).join('\n'))).problems, [/is missing: another run knew it with 4/])
})

t.test('a tenant that requires its audit log gets no call through without it; another one goes on', async (t) => {
  const path = await folder(t)
  const file = join(path, 'audit.jsonl')
  await symlink('/dev/full', file)
  const key = 'gh_key_of_the_other_0123456789'
  const { acme, records } = await audited(t, {
    file,
    audit: { required: true },
    more: { admin: adminSection },
    tenants: { other: { auth: { keys: [{ name: 'other', key }] }, upstreams: {} } }
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const other = await legacyClient(acme.url('default', 'other'), key)
  const call = () => client.request('tools/call', { name: 'echo', arguments: {} })
  await until('it is known that nothing can be written', () =>
    acme.log.some(({ msg, tenant }) => msg === 'audit records cannot be written' && tenant === 'acme')
  )
  t.match(await call(), { json: { error: { message: /^The audit log of this tenant cannot be written/ } } })
  t.equal(acme.upstream.server.calls('echo'), 0, 'nothing reached the upstream')
  t.match(await other.request('tools/list'), { json: { result: { tools: [] } } })
  const ready = async () => await (await fetch(`${acme.publicUrl}/health/ready`)).json()
  t.match(await ready(), { status: 'ready', audit: /are refused calls/ }, 'for the other one')
  const problems = async (by: string) => (await adminCall(acme.adminUrl, 'GET', '/v1/problems', { key: by })).json
  t.match(await problems(adminKeys.acme), { items: [{ kind: 'audit', severity: 'fault', tenant: 'acme' }] })
  t.match(await problems(adminKeys.globex), { items: [] }, 'nobody else is told')

  await rm(file)
  await writeFile(file, '')
  await until('calls are let through again', async () => (await call()).json.result !== undefined)
  t.same(await ready(), { status: 'ready' })
  t.match(await problems(adminKeys.acme), { items: [] })
  const echoes = (await records()).filter(({ original, outcome }) => original === 'echo' && outcome === 'ok')
  t.equal(echoes.length, 1, 'the record was there before the answer')
})

t.test('equal arguments have equal hashes; recorded arguments lack what is secret', async (t) => {
  const { acme, records } = await audited(t, { audit: { arguments: true } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const long = 'x'.repeat(300_000)
  const secret = { text: 'a', apiKey: 'hidden', nested: [{ PASSWORD: 'hidden' }] }
  for (const args of [
    { text: 'a' },
    { text: 'a' },
    { text: 'b' },
    { text: long },
    { text: long },
    { text: `${long}y` },
    secret
  ])
    await client.request('tools/call', { name: 'echo', arguments: args })
  await acme.close()
  const calls = (await records()).filter(({ kind }) => kind === 'call')
  const [a, again, b, longOne, longAgain, longer] = calls.map(({ argumentsHash }) => argumentsHash)
  t.equal(a, again)
  t.equal(longOne, longAgain)
  t.equal(new Set([a, b, longOne, longer]).size, 4)
  t.match(String(a), /^[A-Za-z0-9_-]{43}$/)
  t.same(calls[0]?.['arguments'], { text: 'a' })
  t.equal(calls[3]?.['arguments'], undefined, 'what is long is left out')
  t.same(calls[6]?.['arguments'], { text: 'a', apiKey: '[redacted]', nested: [{ PASSWORD: '[redacted]' }] })
})

t.test('a flood of refused requests is counted to the last one, not recorded one by one', async (t) => {
  const { acme, records } = await audited(t)
  const refuse = (who: string) => send(acme.url(), { headers: { authorization: `Bearer ${who}` }, body: '{}' })
  for (let n = 0; n < 100; n++) t.equal((await refuse('nobody')).status, 401)
  // Who is let in is counted apart: what the flood leaves out is not theirs.
  t.equal((await refuse(keyOf.ada)).status, 415)
  await acme.close()
  const refused = (await records()).filter(({ kind }) => kind === 'refused')
  const ofAda = refused.filter(({ by }) => by !== undefined)
  t.match(ofAda, [{ by: { name: 'ada' }, outcome: 'unsupported_media_type' }])
  const others = refused.filter(({ by }) => by === undefined)
  t.ok(others.length >= 51 && others.length < 60, `${others.length} records`)
  const counted = others.map(({ outcome, unrecorded = 0 }) => Number(unrecorded) + (outcome === undefined ? 0 : 1))
  t.equal(
    counted.reduce((sum, each) => sum + each, 0),
    100
  )
})
