// What a request needs of a client against what the client declares, and one text for one value.

import t from 'tap'
import { canonicalJsonOf } from '../../src/protocol/json-text.ts'
import { mergeModernCapabilities, missingCapabilities } from '../../src/protocol/methods.ts'

t.test('what a client did not declare', async (t) => {
  t.same(missingCapabilities({ sampling: {} }, {}), { sampling: {} })
  t.same(missingCapabilities({ sampling: { tools: {} }, roots: {} }, { sampling: {}, roots: {} }), {
    sampling: { tools: {} }
  })
  t.same(missingCapabilities({ elicitation: { form: {} } }, { elicitation: { url: {} } }), {
    elicitation: { form: {} }
  })
  t.same(missingCapabilities({ extensions: { 'a/b': {} } }, { extensions: { 'a/c': {} } }), {
    extensions: { 'a/b': {} }
  })
  for (const [required, declared] of [
    [{ elicitation: { form: {} } }, { elicitation: {} }],
    [{ sampling: {} }, { sampling: { tools: {} } }],
    [{}, {}],
    [undefined, {}],
    ['x', {}]
  ] as const) {
    t.equal(missingCapabilities(required, declared), undefined, JSON.stringify(required))
  }
})

t.test('the order of members does not count, everything else does', async (t) => {
  t.equal(canonicalJsonOf({ b: [1, { d: null, c: 'x' }], a: true }), '{"a":true,"b":[1,{"c":"x","d":null}]}')
  t.not(canonicalJsonOf([1, 2]), canonicalJsonOf([2, 1]))
  t.not(canonicalJsonOf({ a: 1 }), canonicalJsonOf({ a: '1' }))
  t.equal(canonicalJsonOf(JSON.parse('{"__proto__":1,"a":2}')), '{"__proto__":1,"a":2}')
})

t.test('an upstream that is not known counts as offering lists, and nothing beyond', async (t) => {
  t.same(mergeModernCapabilities([undefined]), {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
    completions: {},
    logging: {}
  })
  t.same(mergeModernCapabilities([{ modern: true, capabilities: { tools: {} } }]), { tools: { listChanged: true } })
  t.same(mergeModernCapabilities([]), {})
})
