// Conditions of rules: what they see, what they may not do, and when they cannot tell.

import t from 'tap'
import { compileCondition, ConditionError, type ConditionFacts } from '../../src/config/condition.ts'
import { markNumbers } from '../../src/protocol/json-numbers.ts'

const principal = {
  kind: 'token',
  issuer: 'https://idp.example',
  subject: 'ada',
  client: 'app',
  key: '',
  scopes: ['mcp'],
  groups: ['dev', 'ops'],
  roles: []
}

const judge = (expression: string, args: object = {}): boolean | undefined =>
  compileCondition(expression)({
    args: args as ConditionFacts['args'],
    name: 'pay',
    principal,
    now: new Date('2026-07-28T22:30:00Z')
  })

t.test('a condition looks at arguments, name, principal and time', async (t) => {
  for (const [expression, args] of [
    ['args.amount <= 100', { amount: 100 }],
    ['args.amount == 0.5', { amount: 0.5 }],
    ['args.to.user.name == "ada"', { to: { user: { name: 'ada' } } }],
    ['args.path.glob("/public/*.txt")', { path: '/public/a/b.txt' }],
    ['args.tags.all(tag, tag in ["a", "b"])', { tags: ['a', 'b', 'a'] }],
    ['!has(args.force) || args.force == false', {}],
    ['args["a-b"] == null', { 'a-b': null }],
    ['name == "pay"', {}],
    ['principal.subject == "ada" && principal.key == "" && "ops" in principal.groups', {}],
    ['args.owner == principal.subject', { owner: 'ada' }],
    ['principal.groups.exists(group, group.startsWith("o"))', { text: 'x'.repeat(100_000) }],
    ['now.getHours() == 22 && now.getHours("Europe/Berlin") == 0 && now.getDayOfWeek() == 2', {}],
    ['size(args.ids) <= 3000', { ids: Array.from({ length: 3_000 }, (_, at) => at) }]
  ] as const)
    t.equal(judge(expression, args), true, expression)
  t.equal(judge('args.amount <= 100', { amount: 100.5 }), false)
  t.equal(judge('args.path.glob("/public/*")', { path: '/private' }), false)
})

t.test('what is missing or of another type cannot be told, unless the rest decides', async (t) => {
  t.equal(judge('args.amount <= 100'), undefined)
  t.equal(judge('args.amount <= 100', { amount: '5' }), undefined)
  t.equal(judge('args.amount', { amount: 1 }), undefined, 'neither true nor false')
  t.equal(judge('args.toString == null'), undefined, 'what an object inherits is not there')
  t.equal(judge('args.amount <= 100 || args.ok', { ok: true }), true)
})

t.test('a number that servers may read in two ways equals nothing', async (t) => {
  const text = '{"a":{"n":5.00000000000000000001}}'
  const args = markNumbers(text, [[10, 32]]) as object
  t.equal(JSON.stringify(args), text)
  for (const expression of ['args.a.n == 5', 'args.a.n != 5', 'args.a.n > 4', 'args.a == {"n": 5}'])
    t.equal(judge(expression, args), undefined, expression)
  t.equal(judge('args.a.n == 5', { a: { n: 5 } }), true)
})

t.test('elements are looked at one by one in small arguments only', async (t) => {
  const every = 'args.ids.all(id, id > 0)'
  t.equal(judge(every, { ids: Array.from({ length: 900 }, () => 1) }), true)
  t.equal(judge(every, { ids: Array.from({ length: 1_100 }, () => 1) }), undefined)
  t.equal(judge(every, { ids: [1], text: 'x'.repeat(60_000) }), true)
  t.equal(judge(every, { ids: [1], text: 'x'.repeat(70_000) }), undefined)
  t.equal(judge(every, { ids: [1], ['x'.repeat(70_000)]: 1 }), undefined, 'names are text, too')
})

t.test('what is no condition is refused with what to do', async (t) => {
  for (const [expression, message, remedy] of [
    ['args.amount >', /^is no CEL expression: Unexpected token/, /args, name, principal/],
    ['amount > 5', /^is no condition: Unknown variable: amount/, /args, name, principal/],
    ['principal.grops == []', /^is no condition: No such key: grops/, /\.groups/],
    ['args.amount + 5.0', /^is a double/, /Compare/],
    ['size(args)', /^is a int/, /Compare/],
    ['args.path.matches("(a+)+$")', /^calls matches/, /glob/],
    ['args.path.split("/")[0] == ""', /^calls split/, /glob/],
    ['args.a.all(x, args.b.exists(y, x == y))', /^has exists within another one/, /two rules/],
    ['args.text.contains(args.part)', /^calls contains with a text that is not in the expression/, /quotes/],
    [`${'!'.repeat(5_000)}true`, /^is no CEL expression/, /args/],
    [Array.from({ length: 600 }, () => 'true').join(' || '), /^is no CEL expression/, /args/]
  ] as const) {
    const error = t.throws(() => compileCondition(expression), ConditionError) as unknown as ConditionError
    t.match(error.message, message)
    t.match(error.remedy, remedy)
    t.notMatch(error.message, /\n/)
  }
})
