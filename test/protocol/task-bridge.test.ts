// Tasks of both eras in each other's words, and back.

import t from 'tap'
import {
  legacyOutcome,
  legacyTask,
  modernOutcome,
  modernTask,
  pollDelayMs,
  relatedTaskKey,
  relatedTaskOf,
  statusMessageOf,
  withRelatedTask,
  withoutRelatedTask
} from '../../src/protocol/translate/tasks.ts'

const times = { createdAt: '2025-11-25T10:30:00Z', lastUpdatedAt: '2025-11-25T10:40:00Z' }
const old = (status: string, more = {}) => ({ taskId: 'a', status, ...times, ttl: 60_000, pollInterval: 500, ...more })
const modern = (status: string, more = {}) => ({
  taskId: 'a',
  status,
  ...times,
  ttlMs: 60_000,
  pollIntervalMs: 500,
  ...more
})
const result = { content: [{ type: 'text', text: 'x' }] }
const failure = { ...result, isError: true }
const error = { code: -32050, message: 'no', data: { x: 1 } }

t.test('times change their names, and nothing else changes', async (t) => {
  for (const status of ['working', 'input_required', 'cancelled']) {
    t.same(
      modernTask(old(status, { statusMessage: 'm', 'com.example/x': { y: 1 } })),
      modern(status, { statusMessage: 'm', 'com.example/x': { y: 1 } })
    )
    t.same(
      legacyTask(modern(status, { statusMessage: 'm', 'com.example/x': { y: 1 } })),
      old(status, { statusMessage: 'm', 'com.example/x': { y: 1 } })
    )
  }
})

t.test(
  'what has no limit, or says none, has none in the other spelling; a time that is none is left out',
  async (t) => {
    for (const ttl of [null, undefined, 'long', -1, Infinity]) {
      t.same(modernTask(old('working', { ttl, pollInterval: 'often' })), {
        taskId: 'a',
        status: 'working',
        ...times,
        ttlMs: null
      })
      t.same(legacyTask(modern('working', { ttlMs: ttl, pollIntervalMs: 'often' })), {
        taskId: 'a',
        status: 'working',
        ...times,
        ttl: null
      })
    }
    t.equal(modernTask(old('working', { ttl: 0 }))['ttlMs'], 0)
  }
)

t.test(
  '2025-11-25 to the extension: a result is completed, whatever it says; only a JSON-RPC error is failed',
  async (t) => {
    const related = { ...result, _meta: { [relatedTaskKey]: { taskId: 'a' } } }
    t.same(modernOutcome(old('completed'), { result: related }), modern('completed', { result }))
    t.same(modernOutcome(old('failed'), { result: failure }), modern('completed', { result: failure }))
    t.same(modernOutcome(old('failed'), { error }), modern('failed', { error }))
    t.same(modernOutcome(old('completed'), { error }), modern('failed', { error }), 'a result that is gone')
    t.same(modernOutcome(old('cancelled'), { error }), modern('cancelled'), 'a cancelled one ended with nothing')
    t.same(modernOutcome(old('working'), undefined), modern('working'))
  }
)

t.test("the extension to 2025-11-25: a tool's own error is failed, and what it ended with is asked for", async (t) => {
  const inlined = { resultType: 'complete', _meta: { x: 1 }, inputRequests: { k: {} } }
  t.same(legacyTask(modern('completed', { ...inlined, result })), old('completed'))
  t.same(legacyTask(modern('completed', { result: failure })), old('failed'))
  t.same(legacyTask(modern('failed', { error })), old('failed'))
  t.same(legacyTask(modern('input_required', inlined)), old('input_required'))
  t.same(legacyOutcome(modern('completed', { result: { ...result, resultType: 'complete' } })), { result })
  t.same(legacyOutcome(modern('completed', { result: failure })), { result: failure })
  t.same(legacyOutcome(modern('failed', { error })), { error })
  t.match(legacyOutcome(modern('failed')), { error: { code: -32603 } })
  for (const status of ['working', 'input_required', 'cancelled']) t.equal(legacyOutcome(modern(status)), undefined)
})

t.test('there and back again', async (t) => {
  const outcomes = [
    ['completed', { result }],
    ['failed', { result: failure }],
    ['failed', { error }]
  ] as const
  for (const [status, outcome] of outcomes) {
    const shown = modernOutcome(old(status), outcome)
    t.same(legacyTask(shown), old(status))
    t.same(legacyOutcome(shown), outcome)
  }
})

t.test('the task that something belongs to stands in _meta of 2025-11-25 only', async (t) => {
  const own = { a: 1, _meta: { kept: true } }
  const marked = withRelatedTask(own, 'a')
  t.same(marked, { a: 1, _meta: { kept: true, [relatedTaskKey]: { taskId: 'a' } } })
  t.equal(relatedTaskOf(marked), 'a')
  t.same(withoutRelatedTask(marked), own)
  t.equal(withoutRelatedTask(own), own, 'the very same object')
  t.same(withoutRelatedTask(withRelatedTask({ a: 1 }, 'a')), { a: 1 })
  for (const params of [
    undefined,
    {},
    { _meta: 1 },
    { _meta: {} },
    { _meta: { [relatedTaskKey]: 1 } },
    { _meta: { [relatedTaskKey]: { taskId: 1 } } }
  ])
    t.equal(relatedTaskOf(params), undefined)
})

t.test('who asks again waits as long as the server suggests, within reason', async (t) => {
  t.equal(pollDelayMs({ pollInterval: 300 }), 300)
  t.equal(pollDelayMs({ pollIntervalMs: 300 }), 300)
  t.equal(pollDelayMs({}), 1_000)
  t.equal(pollDelayMs({ pollInterval: 0 }), 20)
  t.equal(pollDelayMs({ pollInterval: 1e12 }), 10_000)
  t.equal(pollDelayMs({ pollInterval: 'soon' }), 1_000)
  t.same(
    [0, 160, 800, 4_000, 1e9].map((ranMs) => pollDelayMs({ pollInterval: 0 }, ranMs)),
    [20, 20, 100, 500, 500],
    'a task that takes long is asked for less often'
  )
  t.equal(pollDelayMs({ pollInterval: 2_000 }, 1e9), 2_000)
  t.same(
    [
      statusMessageOf({ statusMessage: 'half' }),
      statusMessageOf({ statusMessage: 'x'.repeat(1e6) })?.length,
      statusMessageOf({ statusMessage: 7 }),
      statusMessageOf({})
    ],
    ['half', 1_000, undefined, undefined]
  )
})
