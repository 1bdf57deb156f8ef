// Conditions of rules: what they see, what they may not do, and when they cannot tell.

import t from 'tap'
import { compileCondition, conditionBudget, type ConditionFacts } from '../../src/config/policy/condition.ts'
import { ConditionError } from '../../src/config/policy/condition-syntax.ts'
import { parseJson } from '../../src/protocol/json.ts'

const principal = {
  kind: 'token',
  issuer: 'https://idp.example',
  subject: 'ada',
  client: 'app',
  scopes: ['mcp'],
  groups: ['dev', 'ops'],
  roles: []
}
type Args = ConditionFacts['args']

const judge = (expression: string, args: object = {}, budget = conditionBudget()): boolean | undefined =>
  compileCondition(expression).holds(
    { args: args as Args, name: 'pay', principal, now: new Date('2026-07-28T22:30:00Z') },
    budget
  )
const parsed = (text: string): object => parseJson(Buffer.from(text)) as object

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
    ['principal.subject == "ada" && !has(principal.key) && "ops" in principal.groups', {}],
    ['args.owner == principal.subject', { owner: 'ada' }],
    ['principal.groups.exists(group, group.startsWith("o"))', { text: 'x'.repeat(4_000_000) }],
    ['args.path == "/a" && has(args.text)', { path: '/a', text: 'x'.repeat(4_000_000) }],
    ['"path" in args && args.to == {"a": [1, 2]}', { path: 1, to: { a: [1, 2] } }],
    ['now.getHours() == 22 && now.getMinutes() == 30 && now.getDayOfWeek() == 2', {}],
    ['now.at("Europe/Berlin").getHours() == 0 && now.at("Europe/Berlin").getDayOfWeek() == 3', {}],
    ['size(args.ids) <= 3000', { ids: Array.from({ length: 3_000 }, (_, at) => at) }]
  ] as const)
    t.equal(judge(expression, args), true, expression)
  t.equal(judge('args.amount <= 100', { amount: 100.5 }), false)
  t.equal(judge('args.path.glob("/public/*")', { path: '/private' }), false)
})

t.test('what is missing or of another type cannot be told, unless the rest decides', async (t) => {
  for (const [expression, args] of [
    ['args.amount <= 100', {}],
    ['args.amount <= 100', { amount: '5' }],
    ['args.amount', { amount: 1 }],
    ['args.toString == null', {}],
    ['args.__proto__ == null', {}],
    ['args.kind == "x"', { kind: ['x'] }],
    ['args.kind != "x"', { kind: 5 }],
    ['"x" == args.kind', { kind: { a: 1 } }],
    ['args.kind in ["x", "y"]', { kind: ['x'] }],
    ['args.flag == true', { flag: 'true' }],
    ['principal.key == ""', {}]
  ] as const)
    t.equal(judge(expression, args), undefined, expression)
  t.equal(judge('args.amount <= 100 || args.ok', { ok: true }), true)
  t.equal(judge('args.kind == "x"', { kind: 'y' }), false)
})

t.test('a number that servers may read in two ways cannot be told, wherever it stands', async (t) => {
  const inexact = '5.00000000000000000001'
  const args = parsed(
    `{"n":${inexact},"list":[0,${inexact}],"map":{"x":1,"y":${inexact}},"long":1${'0'.repeat(400)},"a":5}`
  )
  for (const expression of [
    'args.n == 5',
    'args.n != 5',
    'args.n > 4',
    '5 in args.list',
    'args.list == [0, 5]',
    'args.map == {"x": 1, "y": 5}',
    'args.list.exists(each, each == 5)',
    'args.long > 5',
    'size(args) == 5'
  ])
    t.equal(judge(expression, args), undefined, expression)
  t.equal(judge('args.a == 5', args), true, 'what is not looked at does not matter')
  t.equal(judge('args.list[0] == 5', args), undefined, 'of a list, all is looked at')
})

t.test('what a call may make conditions cost is bounded, for all of them together', async (t) => {
  const list = (length: number): object => ({ ids: Array.from({ length }, () => 1), text: 'x'.repeat(60_000) })
  t.equal(judge('args.ids.all(id, id > 0)', list(300)), true)
  t.equal(judge('args.ids.all(id, id > 0)', list(100_000)), undefined)
  t.equal(judge('args.ids == args.ids', list(5_000)), true)
  t.equal(judge('args.text == "a"', list(1)), false)
  t.equal(judge('args.text == "a"', { text: 'x'.repeat(4_000_000) }), undefined)
  t.equal(judge('args.ids.all(id, size(args.text) > id)', list(900)), undefined, 'for each element, all of the text')
  t.equal(judge('args.ids.all(id, size(args.text) > id)', { ids: [1, 2], text: 'abc' }), true)
  const budget = conditionBudget()
  const answers = Array.from({ length: 100 }, () => judge('args.ids.all(id, id > 0)', list(100), budget))
  t.equal(answers[0], true)
  t.equal(answers.at(-1), undefined, 'many rules share what one call may cost')
  t.ok(budget.left >= 0)
})

t.test('what is no condition is refused with what to do', async (t) => {
  for (const [expression, message, remedy] of [
    ['args.amount >', /^is no CEL expression: Unexpected token/, /args, name/],
    ['amount > 5', /^is no condition: Unknown variable: amount/, /args, name/],
    ['principal.grops == []', /^looks at principal\.grops/, /principal\.groups/],
    ['size(principal) > 1', /^looks at the whole principal/, /principal\.groups/],
    ['args.amount + 5.0', /^is a double/, /Compare/],
    ['size(args)', /^is a int/, /Compare/],
    ['args.path.matches("(a+)+$")', /^calls matches/, /glob/],
    ['args.path.split("/")[0] == ""', /^calls split/, /Known: .*glob/],
    ['duration(args.x) > duration("1s")', /^calls duration/, /Known/],
    ['timestamp(args.x) < now', /^calls timestamp/, /Known/],
    ['bytes(args.x).json() == {}', /^calls (bytes|json)/, /Known/],
    ['int(args.x) > 5', /^calls int/, /Known/],
    ['cel.bind(x, args.a, x == x)', /^calls bind/, /Known/],
    ['args.a.map(x, x)[0] == 1', /^calls map/, /Known/],
    ['args.a.all(x, args.b.exists(y, x == y))', /^has exists within another one/, /two rules/],
    ['args.text.contains(args.part)', /^calls contains with a text that is not in the expression/, /quotes/],
    ['now.getHours("Europe/Berlin") > 5', /^calls getHours with a time zone/, /now\.at\("Europe\/Berlin"\)\.getHours/],
    ['now.at(args.zone).getHours() > 5', /^calls at without a time zone in quotes/, /now\.at/],
    ['now.at("Europe/Berln").getHours() > 5', /^names a time zone that there is not/, /Europe\/Berlin/],
    [`${'!'.repeat(5_000)}true`, /^is no CEL expression/, /args/],
    [Array.from({ length: 600 }, () => 'true').join(' || '), /^is no CEL expression/, /args/]
  ] as const) {
    const error = t.throws(() => compileCondition(expression), ConditionError) as unknown as ConditionError
    t.match(error.message, message, expression)
    t.match(error.remedy, remedy, expression)
    t.notMatch(error.message, /\n/)
  }
})
