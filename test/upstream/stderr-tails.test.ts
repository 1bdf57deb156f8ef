// What is kept of the standard error of upstreams: the last lines within the limits, counted for their tenant and given
// back with the upstream.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { createStderrTails } from '../../src/upstream/pool/stderr-tails.ts'
import { handClock, stdioDefinition } from '../kit/connector.ts'

const definition = stdioDefinition()
const other = stdioDefinition({}, { hash: 'another' })

function tails(budgetBytes?: number) {
  const memory = createMemoryAccount(budgetBytes)
  return { memory, made: createStderrTails(handClock(), memory) }
}

t.test('the last lines are kept, however many are written, and those of another upstream beside them', async (t) => {
  const { made, memory } = tails()
  made.add(other, 'mine', 0)
  for (let line = 1; line <= 1_000; line++) made.add(definition, `line ${line}`, line === 1_000 ? 7 : 0)
  const kept = made.of(definition)
  t.match([kept.length, kept[0]?.text, kept.at(-1)], [50, 'line 951', { text: 'line 1000', leftOut: 7 }])
  t.same(
    made.of(other).map(({ text }) => text),
    ['mine']
  )
  for (let line = 0; line < 100; line++) made.add(definition, 'x'.repeat(1_000), 0)
  t.ok(made.of(definition).length < 10 && made.of(definition).length > 5, 'long lines are fewer')
  t.ok(memory.ofTenant(definition.tenant).used <= 2 * 16_384, 'and counted for the tenant')
  made.retain(new Set(['another']))
  t.same(made.of(definition), [])
  t.ok(memory.held < 1_000 && memory.held > 0, 'what was held is given back, and the other one is kept')
})

t.test('a tenant that holds all its memory has fewer lines, and its last line all the same', async (t) => {
  const { made, memory } = tails(4_000)
  for (let line = 0; line < 20; line++) made.add(definition, `line ${line} ${'x'.repeat(100)}`, 0)
  t.ok(made.of(definition).length < 20, String(made.of(definition).length))
  t.ok(memory.held <= 4_000, String(memory.held))
  t.match(made.lastOf(definition.hash), /^line 19 /)
})

t.test('of an error with its stack the line that says what it is counts as the last', async (t) => {
  const { made } = tails()
  for (const line of ['Error: no such file', '    at open (fs.js:1)', '', 'Node.js v24.0.0'])
    made.add(definition, line, 0)
  t.equal(made.lastOf(definition.hash), 'Error: no such file')
  t.equal(made.of(definition).length, 4)
})
