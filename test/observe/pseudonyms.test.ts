// With pseudonyms nobody's name is in the log, in a trace or among live calls; who has the key finds them.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { authOf, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { cli } from '../cli/kit.ts'
import { shownName } from '../../src/observe/pseudonyms.ts'
import { collector } from './collector.ts'

const pseudonyms = { key: 'a secret of the operators, 32 characters or more' }
const person = 'ada.lovelace@example.com'

t.test(
  'people and keys are called by pseudonyms wherever calls are told of, and by name in the audit log',
  async (t) => {
    const to = await collector(t)
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
    const made = await adminGateway(t, {
      upstreams: { up: { url: upstream.url } },
      auth: { ...(authOf(issuer) as object), requiredScopes: ['mcp'] },
      top: { pseudonyms, audit: {}, telemetry: { otlp: { endpoint: to.endpoint }, signals: ['traces', 'logs'] } }
    })
    const claims = { aud: made.url(), sub: person, client_id: 'app', scope: 'mcp' }
    const events = await fetch(`${made.adminUrl}/v1/calls`, {
      headers: { Authorization: `Bearer ${adminKeys.platform}`, Accept: 'text/event-stream' }
    })
    let live = ''
    const heard = (async () => {
      for await (const part of events.body ?? []) live += Buffer.from(part as Uint8Array).toString()
    })().catch(() => {})
    const client = await legacyClient(made.url(), await issuer.sign(claims))
    await client.request('tools/call', { name: 'up__echo', arguments: {} })
    await client.request('tools/call', { name: 'up__none', arguments: {} })
    // Let in and refused; refused for want of a scope; with an API key whose name is that of a person.
    const headers = { authorization: `Bearer ${await issuer.sign(claims)}`, 'content-type': 'application/json' }
    t.equal((await send(made.url(), { headers, body: 'no JSON' })).status, 400)
    const lacking = `Bearer ${await issuer.sign({ ...claims, scope: 'other' })}`
    t.equal((await send(made.url(), { headers: { ...headers, authorization: lacking }, body: '{}' })).status, 403)

    const pseudonym = shownName({ pseudonyms }, 'acme', person)
    t.match(pseudonym, /^p_[\w-]{16}$/)
    await until('the live call is heard', () => live.includes('"tool":"echo"'))
    const calls = made.log.filter(({ msg }) => msg === 'call')
    t.ok(calls.length >= 3 && calls.every(({ user }) => user === pseudonym), 'the same each time')
    t.match(
      made.log.find(({ reason }) => reason === 'parse_error'),
      { user: pseudonym, client: 'app' }
    )
    t.match(made.log.find(({ reason }) => reason === 'insufficient_scope')?.['cause'], { reason: 'scope' })
    await until('the control: the audit log has the name', async () => {
      const { text } = await made.call('GET', '/v1/tenants/acme/audit')
      return text.includes(person)
    })
    await made.close()
    await heard
    const isTold = ({ attributes }: (typeof to.logs)[number]): boolean => JSON.stringify(attributes).includes(pseudonym)
    await until('lines about the person are sent', () => to.logs.some(isTold))
    await until('traces are sent', () => to.seen.some(({ path }) => path === '/v1/traces'))
    for (const [where, text] of Object.entries({ log: JSON.stringify(made.log), collector: to.raw.join(''), live })) {
      t.notMatch(text, person, where)
      t.match(text, pseudonym, where)
    }
  }
)

t.test('nor are they told of limits, of keys that are over, or of what administrators do', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const [audience, issuers] = ['urn:admin', [{ issuer: idp.issuer }]]
  const made = await adminGateway(t, {
    upstreams: { up: { url: upstream.url } },
    auth: {
      keys: [
        { name: person, key: keyOf.ada },
        { name: `old.${person}`, key: keyOf.bob, expires: '2020-01-01T00:00:00Z' }
      ]
    },
    limits: { requestsPerSecondPerPrincipal: 1 },
    top: {
      pseudonyms,
      audit: {},
      admin: { ...adminSection, oidc: { issuers, audience, access: [{ role: 'viewer', subjects: ['vera'] }] } }
    }
  })
  const asked = (key: string) =>
    send(made.url(), { headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: '{}' })
  const answers = await Promise.all(Array.from({ length: 40 }, () => asked(keyOf.ada)))
  t.ok(answers.some(({ status }) => status === 429))
  t.equal((await asked(keyOf.bob)).status, 401)
  const kill = `/v1/tenants/acme/kills/principals/${encodeURIComponent('gatehouse:key')}/${encodeURIComponent(person)}`
  t.equal((await made.call('PUT', `${kill}?force=true`)).status, 201)
  const roleless = await idp.sign({ aud: audience, sub: person, client_id: 'app' })
  t.equal((await made.call('GET', '/v1/tenants', { key: roleless })).status, 403)

  const said = (msg: string) => made.log.find((each) => String(each['msg']).startsWith(msg))
  t.match(said('too many requests a second'), { client: shownName({ pseudonyms }, 'acme', person) })
  const old = shownName({ pseudonyms }, 'acme', `old.${person}`)
  t.match(made.log.find(({ status }) => status === 401)?.['cause'], { reason: 'expired', detail: old })
  t.match(said('an administrator'), { change: { action: /kill/, tenant: 'acme', role: 'platform-admin' } })
  t.match(said('a token without a role'), { subject: /^p_/ })
  t.match((await made.call('GET', '/v1/tenants/acme/audit')).text, person, 'the control: the audit log has the name')
  t.notMatch(JSON.stringify(made.log), person)
})

t.test('a pseudonym is of one tenant, and one command finds it', async (t) => {
  t.not(shownName({ pseudonyms }, 'acme', person), shownName({ pseudonyms }, 'globex', person))
  t.not(shownName({ pseudonyms }, 'acme', person), shownName({ pseudonyms: { key: 'x'.repeat(32) } }, 'acme', person))
  t.equal(shownName({}, 'acme', person), person)
  const file = join(t.testdir(), 'gatehouse.yaml')
  const tenants = { acme: { auth: { keys: [{ name: 'ada', key: keyOf.ada }] }, upstreams: {} } }
  writeFileSync(file, JSON.stringify({ pseudonyms: { key: '${KEY}' }, tenants }))
  const args = ['pseudonym', person, '--config', file, '--tenant', 'acme']
  t.match(await cli(args, { KEY: pseudonyms.key }), {
    code: 0,
    out: `${shownName({ pseudonyms }, 'acme', person)}\n`,
    err: ''
  })
  t.match(await cli([...args.slice(0, -1), 'globx'], { KEY: pseudonyms.key }), { code: 0, err: /no tenant "globx"/ })
  t.match(await cli(args, { KEY: 'short' }), { code: 1, err: /pseudonyms\.key/ })
  writeFileSync(file, JSON.stringify({ tenants }))
  await t.rejects(cli(args), /has no "pseudonyms"/)
  t.match(await cli(['pseudonym', 'ada']), { code: 2 })
})
