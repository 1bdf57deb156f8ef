// What a request needs of a client against what the client declares, and one text for one value.

import t from 'tap'
import { canonical } from '../../src/protocol/canonical.ts'
import { mergeModern } from '../../src/protocol/merge.ts'
import { undeclared } from '../../src/protocol/required.ts'

t.test('what a client did not declare', async (t) => {
  t.same(undeclared({ sampling: {} }, {}), { sampling: {} })
  t.same(undeclared({ sampling: { tools: {} }, roots: {} }, { sampling: {}, roots: {} }), { sampling: { tools: {} } })
  t.same(undeclared({ elicitation: { form: {} } }, { elicitation: { url: {} } }), { elicitation: { form: {} } })
  t.same(undeclared({ extensions: { 'a/b': {} } }, { extensions: { 'a/c': {} } }), { extensions: { 'a/b': {} } })
  for (const [required, declared] of [[{ elicitation: { form: {} } }, { elicitation: {} }], [{ sampling: {} }, { sampling: { tools: {} } }], [{}, {}], [undefined, {}], ['x', {}]] as const) {
    t.equal(undeclared(required, declared), undefined, JSON.stringify(required))
  }
})

t.test('the order of members does not count, everything else does', async (t) => {
  t.equal(canonical({ b: [1, { d: null, c: 'x' }], a: true }), '{"a":true,"b":[1,{"c":"x","d":null}]}')
  t.not(canonical([1, 2]), canonical([2, 1]))
  t.not(canonical({ a: 1 }), canonical({ a: '1' }))
  t.equal(canonical(JSON.parse('{"__proto__":1,"a":2}')), '{"__proto__":1,"a":2}')
})

t.test('an upstream that is not known counts as offering lists, and nothing beyond', async (t) => {
  t.same(mergeModern([undefined]), { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true }, completions: {}, logging: {} })
  t.same(mergeModern([{ modern: true, capabilities: { tools: {} } }]), { tools: { listChanged: true } })
  t.same(mergeModern([]), {})
})
