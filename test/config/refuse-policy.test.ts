import t from 'tap'
import { ConfigError } from '../../src/config/problems.ts'
import { compileConfig } from '../../src/config/load.ts'

const issuer = (name: string) => ({ issuer: `https://${name}.example.com` })

function problems(policy: unknown, issuers = [issuer('one')]): string[] {
  const acme = { auth: { issuers }, upstreams: { up: { url: 'https://up.example.com/mcp' } }, policy }
  try {
    compileConfig(JSON.stringify({ tenants: { acme } }), { path: 'x', env: {} })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message }) => `${path.replace('tenants.acme.', '')} ${message}`)
  }
}
const allow = { name: 'a', effect: 'allow' }

t.test('a policy says what is the default, and each of its rules has one name and one meaning', async (t) => {
  t.same(problems({ default: 'deny', rules: [allow] }), [])
  t.same(problems({ rules: [allow] }), ['policy.default is missing'])
  t.same(problems({ default: 'allow', rules: [allow, allow] }), [
    'policy.rules[1].name is the same name as that of entry 1'
  ])
  t.same(problems({ default: 'allow', rules: [{ ...allow, effect: 'requires' }] }), [
    'policy.rules[0] requires no scopes'
  ])
  t.same(problems({ default: 'allow', rules: [{ ...allow, scopes: ['x'] }] }), [
    'policy.rules[0].scopes belongs to rules with effect: requires'
  ])
  t.same(problems({ default: 'allow', rules: [{ ...allow, what: { names: [] } }] }), [
    'policy.rules[0].what.names is empty'
  ])
})

t.test('a subject without its issuer is refused where several issuers may have one of that name', async (t) => {
  const both = [issuer('one'), issuer('two')]
  const about = (who: object) => ({ default: 'deny', rules: [{ ...allow, who }] })
  t.match(problems(about({ subjects: ['ada'] }), both), [/^policy.rules\[0\].who names subjects/])
  t.same(problems(about({ subjects: ['ada'], issuers: ['https://one.example.com'] }), both), [])
  t.same(problems(about({ subjects: ['ada'] })), [])
})

t.test('a condition is one of CEL, of rules about tools or prompts', async (t) => {
  const when = (expression: string, kinds?: string[]) =>
    problems({ default: 'deny', rules: [{ ...allow, what: kinds === undefined ? {} : { kinds }, when: expression }] })
  t.same(when('args.a == 1', ['tool', 'prompt']), [])
  for (const kinds of [undefined, ['tool', 'template'], ['template']])
    t.same(when('args.a == 1', kinds), [
      'policy.rules[0].when is judged for calls of tools and prompts and for reads of resources only'
    ])
  t.same(when('', ['tool']), ['policy.rules[0].when is empty'])
  t.match(when('arg.a == 1', ['tool']), ['policy.rules[0].when is no condition: Unknown variable: arg'])
  const both = [issuer('one'), issuer('two')]
  const about = (expression: string, who = {}) =>
    problems({ default: 'deny', rules: [{ ...allow, who, what: { kinds: ['tool'] }, when: expression }] }, both)
  t.match(about('args.owner == principal.subject'), [/^policy.rules\[0\].when looks at a subject or client/])
  t.same(about('args.owner == principal.subject', { issuers: ['https://one.example.com'] }), [])
  t.same(about('args.owner == principal.subject && principal.issuer == "https://one.example.com"'), [])
})
