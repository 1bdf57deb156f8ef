// Headers that tell an upstream who calls: each caller's own, never their token, and nothing in a claim makes another
// header or another person of them.

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import type { Teardown } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'

const echo = { name: 'echo', arguments: { text: 'hello' } }

async function setup(t: Teardown, headers: Record<string, string>, more: Record<string, unknown> = {}) {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const acme = await acmeGateway(t, { upstreams: { up: { type: 'http', url: up.url, headers, ...more } } })
  return { up, acme }
}

const modern = (acme: AcmeGateway, token: string) => modernRequest(acme.url(), 'tools/call', echo, { token })

t.test('each call tells who makes it, in both eras, and connections are never shared between callers', async (t) => {
  const { up, acme } = await setup(
    t,
    {
      'X-User': '${principal.subject}',
      'X-From': '${principal.issuer} by ${principal.clientId}',
      'X-Email': '${principal.claims.email}',
      'X-Groups': '${principal.groups}'
    },
    { isolation: 'shared' }
  )
  for (const who of ['ada', 'bob'] as const) {
    const token = await acme.bearer('JWT', who, { email: `${who}@acme.example`, groups: [`team-${who}`, 'all'] })
    const client = await legacyClient(acme.url(), token)
    t.ok((await client.request('tools/list')).json.result.tools.some(({ name }: { name: string }) => name === 'echo'))
    t.ok((await client.request('tools/call', echo)).json.result)
    t.ok((await modern(acme, token)).json.result)
  }
  const users = new Map<string, Set<string>>()
  for (const { headers } of up.seen) {
    const who = String(headers['x-user'])
    t.match(who, /^(?:ada|bob)$/)
    t.equal(headers['x-from'], `${acme.issuer.issuer} by app-of-${who}`)
    t.equal(headers['x-email'], `${who}@acme.example`)
    t.equal(headers['x-groups'], `team-${who},all`)
    t.equal(headers.authorization, undefined, 'never the token')
    const session = headers['mcp-session-id']
    if (typeof session === 'string') users.set(session, (users.get(session) ?? new Set()).add(who))
  }
  t.ok(users.size >= 2)
  for (const [, people] of users) t.equal(people.size, 1, 'one session at the server, one person')
})

t.test('a caller of whom there is nothing to tell is refused, and the upstream is not asked', async (t) => {
  const { up, acme } = await setup(t, { 'X-Email': '${principal.claims.email}' })
  const refused = await modern(acme, keyOf.ada)
  t.equal(refused.json.error.data.reason, 'upstream_unavailable')
  const key = await legacyClient(acme.url(), keyOf.ada)
  t.same((await key.request('tools/list')).json.result.tools, [])
  t.equal(up.seen.length, 0)
  t.match(JSON.stringify(acme.log), /its header X-Email tells the claim email, which this caller does not have/)
  const token = await acme.bearer('JWT', 'ada', { email: 'ada@acme.example' })
  t.ok((await modern(acme, token)).json.result, 'and this is how it works')
})

t.test('API keys are told by their names, and defaults stand for what a caller does not have', async (t) => {
  const { up, acme } = await setup(t, {
    'X-User': '${principal.subject}',
    'X-From': '${principal.issuer}',
    'X-Email': '${principal.claims.email:-nobody@acme.example}',
    'X-Plain': '$${principal.subject}'
  })
  t.ok((await modern(acme, keyOf.bob)).json.result)
  t.same([...new Set(up.seen.map(({ headers }) => headers['x-user']))], ['bob'])
  t.equal(up.seen[0]?.headers['x-from'], 'urn:gatehouse:key')
  t.equal(up.seen[0]?.headers['x-email'], 'nobody@acme.example')
  t.equal(up.seen[0]?.headers['x-plain'], '${principal.subject}')
})

t.test('nothing in a claim ends its header or begins another one', async (t) => {
  const { up, acme } = await setup(t, {
    'X-Name': '${principal.claims.name:-none}',
    'X-Roles': '${principal.roles}',
    'X-Groups': '${principal.claims.teams:-none}'
  })
  const names = ['Zoë 名, 100 %', ' admin', 'a\u2028b', '\ud800', 'ada\r\nX-Admin: yes', 'ada\0', 'x'.repeat(513)]
  for (const name of names) {
    const token = await acme.bearer('JWT', 'ada', { name, roles: ['a,b', 'c'], teams: ['one', { two: 2 }] })
    t.ok((await modern(acme, token)).json.result, encodeURIComponent(name.toWellFormed()))
  }
  const seen = new Set(up.seen.map(({ headers }) => String(headers['x-name'])))
  const given = [...seen].map(decodeURIComponent)
  t.ok(given.includes('Zoë 名, 100 %') && given.includes(' admin') && given.includes('a\u2028b'))
  t.same(
    given.filter((each) => /[\r\n\0]|xxx/.test(each)),
    [],
    'values with control characters count as not there'
  )
  t.ok([...seen].every((each) => /^[\x21-\x7e]+$/.test(each)))
  t.same([...new Set(up.seen.map(({ headers }) => headers['x-roles']))], ['a%2Cb,c'])
  t.same([...new Set(up.seen.map(({ headers }) => headers['x-groups']))], ['none'], 'nor is what is no text')
  t.equal(up.seen.filter(({ headers }) => 'x-admin' in headers).length, 0)
})

t.test('a token that says something else is told from the next call on, in the same session', async (t) => {
  const { up, acme } = await setup(t, { 'X-Groups': '${principal.groups}' })
  const tokens = [
    await acme.bearer('JWT', 'ada', { groups: ['one'] }),
    await acme.bearer('JWT', 'ada', { groups: ['two'] })
  ]
  const client = await legacyClient(acme.url(), tokens[0] as string)
  t.ok((await client.request('tools/call', echo)).json.result)
  const before = up.seen.length
  const headers = { authorization: `Bearer ${tokens[1]}` }
  t.ok((await client.request('tools/call', echo, { headers })).json.result)
  t.same([...new Set(up.seen.slice(0, before).map(({ headers }) => headers['x-groups']))], ['one'])
  t.same([...new Set(up.seen.slice(before).map(({ headers }) => headers['x-groups']))], ['two'])
})

t.test('a reload that changes what is told takes effect for callers who are there', async (t) => {
  const { up, acme } = await setup(t, { 'X-User': '${principal.subject}' })
  const token = await acme.bearer('JWT')
  t.ok((await modern(acme, token)).json.result)
  const report = await acme.gateway.report()
  t.equal(report.length > 0, true, 'what nobody in particular sees is reported without asking')
  t.same([...new Set(up.seen.map(({ headers }) => headers['x-user']))], ['ada'])
})
