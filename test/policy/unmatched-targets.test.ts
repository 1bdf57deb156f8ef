// A rule or limit that names an upstream or tag which the tenant does not have is taken, and check and a plan say so.

import { join } from 'node:path'
import t from 'tap'
import { runCheck } from '../../src/cli/check.ts'
import type { Io } from '../../src/cli/commands/command.ts'
import { adminGateway } from '../kit/admin.ts'
import { startUpstream } from '../kit/upstream.ts'

const rule = (name: string, what: object) => ({ name, effect: 'deny', what })

/** @param names upstreams and tags as rules and limits have them */
const tenantWith = (url: string, [upstream, tag]: readonly [upstream: string, tag: string]) => ({
  auth: { keys: [{ name: 'ci', key: 'gh_key_of_a_tenant_0123456789' }] },
  upstreams: { tickets: { url, tags: { billing: ['pay_*'] } }, off: { url, disabled: true } },
  endpoints: {
    default: {
      upstreams: ['tickets'],
      tools: { 'tickets/echo': { annotations: { destructiveHint: true } } },
      policy: { default: 'allow', rules: [rule('ends', { upstreams: ['*', 't*s', upstream] })] }
    }
  },
  policy: { default: 'allow', rules: [rule('pay', { tags: ['destructive', tag] })] },
  limits: { few: { what: { upstreams: [upstream], tags: [tag] }, perDay: 5 } }
})

const good = ['tickets', 'billing'] as const
const notes = (upstream: string, tag: string) => [
  `the rule "pay" of acme: what.tags[1] is a tag that none of its upstreams and endpoints gives.${tag}`,
  `the rule "ends" of the endpoint default of acme: what.upstreams[2] is no upstream that it has.${upstream}`,
  `the limit "few" of acme: what.upstreams[0] is no upstream that it has.${upstream}`,
  `the limit "few" of acme: what.tags[0] is a tag that none of its upstreams and endpoints gives.${tag}`
]

t.test('check tells each such name by its place', async (t) => {
  async function checked(names: readonly [string, string]): Promise<string[]> {
    const file = join(
      t.testdir({ 'c.json': JSON.stringify({ tenants: { acme: tenantWith('https://a.example/mcp', names) } }) }),
      'c.json'
    )
    const out: string[] = []
    const io = { env: {}, stdout: { write: (text: string) => out.push(text) } } as unknown as Io
    t.equal(await runCheck(file, { connects: false, form: 'json' }, io), 0, 'it is valid')
    return (JSON.parse(out.join('')) as { notes: string[] }).notes
  }
  t.same(await checked(good), [])
  t.same(await checked(['tickts', 'biling']), notes(' Did you mean "tickets"?', ' Did you mean "billing"?'))
  t.same(await checked(['off', 'readOnly']), notes('', ''), 'what is off, and hints of servers that nobody trusts')
})

t.test('a plan tells them, also while the upstream is stopped, and the change is made', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {} })
  const path = '/v1/tenants/team'
  const put = await made.call('PUT', path, { body: tenantWith(upstream.url, good) })
  t.equal(put.status, 201, put.text)
  t.equal((await made.call('PUT', `${path}/kills/upstreams/tickets`)).status, 201)
  async function planned(names: readonly [string, string], more: object = {}) {
    const body = { tenants: { team: { ...tenantWith(upstream.url, names), ...more } } }
    const { json, text } = await made.call('POST', '/v1/plan', { body })
    const { tenants } = json as { tenants: Array<{ notes: string[] }> }
    return tenants[0]?.notes ?? text
  }
  t.same(await planned(good, { origins: ['https://a.example'] }), [])
  const told = notes(' Did you mean "tickets"?', ' Did you mean "billing"?')
  t.same(
    await planned(['tickts', 'biling']),
    told.map((note) => note.replace('of acme', 'of team'))
  )
  const many = Array.from({ length: 30 }, (_, at) => rule(`r${at}`, { upstreams: ['nothing'] }))
  const policy = { default: 'allow', rules: many }
  const ofMany = await planned(good, { policy })
  t.equal(ofMany.length, 21)
  t.equal(ofMany.at(-1), '10 more names in rules and limits of team stand for nothing that it has.')
  const body = { policy }
  t.equal((await made.call('PATCH', path, { body, headers: { 'If-Match': '*' } })).status, 200)
})
