// What an endpoint of several upstreams says of itself; log levels and revisions, the other small tables.

import t from 'tap'
import { type ErrorCode, errorTable } from '../../src/protocol/error-table.ts'
import {
  GatewayError,
  RpcError,
  atLeast,
  isLegacyRevision,
  legacyRevisions,
  rpcCodeOf
} from '../../src/protocol/messages.ts'
import { errorObject } from '../../src/protocol/translate/error-object.ts'
import { isLogLevel, logLevels, moreVerboseLevel, passesLogLevel } from '../../src/protocol/seams.ts'
import { hasCapability, mergeCapabilities, mergeInstructions } from '../../src/protocol/methods.ts'

t.test('capabilities are what at least one upstream offers, in terms of what the gateway passes on', async (t) => {
  t.same(mergeCapabilities([]), {})
  t.same(mergeCapabilities([{}]), {})
  t.same(mergeCapabilities([{ tools: {} }, { prompts: { listChanged: false }, logging: {} }]), {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    logging: {}
  })
  t.same(
    mergeCapabilities([{ resources: { subscribe: true } }, { resources: {} }]),
    { resources: { subscribe: true, listChanged: true } },
    'one that has subscriptions is enough'
  )
  t.same(
    mergeCapabilities([{ resources: { subscribe: false } }, { subscribe: true }]),
    { resources: { listChanged: true } },
    'and none is not'
  )
  t.same(
    mergeCapabilities([{ tools: true, prompts: null, completions: 'yes' } as never]),
    {},
    'a capability is an object'
  )
  t.same(
    mergeCapabilities([undefined, {}]),
    {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      completions: {},
      logging: {},
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } }
    },
    'one that is not known yet may offer anything'
  )
  t.same(
    mergeCapabilities([{ experimental: { x: {} }, extensions: { y: {} }, tasks: {} }]),
    { experimental: { x: {} }, extensions: { y: {} } },
    'the experiments of a single upstream are passed on'
  )
  t.same(
    mergeCapabilities([{ extensions: { y: {}, 'io.modelcontextprotocol/tasks': {} } }]),
    { extensions: { y: {} } },
    'but not the tasks of 2026-07-28, whose methods legacy clients do not have'
  )
  t.same(mergeCapabilities([{ extensions: { 'io.modelcontextprotocol/tasks': {} } }]), {})
  t.same(
    mergeCapabilities([{ experimental: { x: {} } }, { tools: {} }]),
    { tools: { listChanged: true } },
    'those of several could contradict each other'
  )
})

t.test(
  'tasks are promised where calls can become tasks; their list and their end where somebody has them',
  async (t) => {
    const requests = { tools: { call: {} } }
    t.same(mergeCapabilities([{ tasks: { requests, list: {} } }, { tasks: { requests, cancel: {} } }]), {
      tasks: { list: {}, cancel: {}, requests }
    })
    t.same(
      mergeCapabilities([{ tasks: { requests: { ...requests, other: {} } } }]),
      { tasks: { requests } },
      'only what the gateway passes on'
    )
    for (const tasks of [{}, { list: {} }, { requests: {} }, { requests: { tools: {} } }, true, null])
      t.same(mergeCapabilities([{ tasks }]), {})
    t.ok(hasCapability({ a: { b: true, c: {} } }, ['a', 'b']) && hasCapability({ a: { b: true, c: {} } }, ['a', 'c']))
    t.notOk(
      hasCapability({ a: { b: false, c: [] } }, ['a', 'b']) ||
        hasCapability({ a: { c: [] } }, ['a', 'c']) ||
        hasCapability({}, ['a', 'b', 'c'])
    )
  }
)

t.test('instructions', async (t) => {
  const one = (prefix: string, instructions: string | undefined) => ({ upstream: 'up', prefix, instructions })
  t.equal(mergeInstructions(undefined, [one('', undefined)], '__'), undefined)
  t.equal(mergeInstructions(undefined, [one('', 'As they are.')], '__'), 'As they are.')
  t.equal(mergeInstructions('Ours first.', [one('', 'Theirs.')], '__'), 'Ours first.\n\nTheirs.')
  t.equal(
    mergeInstructions(undefined, [one('up', 'Theirs.')], '__'),
    '## up (its tools and prompts are named up__…)\n\nTheirs.'
  )
  t.equal(
    mergeInstructions(undefined, [one('up', ''), { upstream: 'b', prefix: '', instructions: 'B.' }], '__'),
    '## b\n\nB.'
  )
  t.ok((mergeInstructions(undefined, [one('', 'x'.repeat(100_000))], '__')?.length ?? 0) < 17_000, 'a novel is cut')
})

t.test('log levels', async (t) => {
  t.same(
    logLevels.filter((level) => passesLogLevel(level, 'error')),
    ['error', 'critical', 'alert', 'emergency']
  )
  t.ok(passesLogLevel('debug', undefined), 'who asked for nothing gets what comes')
  t.ok(passesLogLevel('loud', 'emergency') && passesLogLevel(7, 'emergency'), 'an unknown level is not lost')
  t.equal(moreVerboseLevel('info', 'debug'), 'debug')
  t.equal(moreVerboseLevel('info', 'alert'), 'info')
  for (const no of ['INFO', '', 'warn', null, 3, ['info'], '__proto__']) t.notOk(isLogLevel(no))
})

t.test('revisions', async (t) => {
  for (const other of ['2026-07-28', '', undefined, null, 20251125, ['2025-11-25'], '2025-11-25\n'])
    t.notOk(isLegacyRevision(other))
  t.ok(
    atLeast('2025-06-18', '2025-06-18') && atLeast('2025-11-25', '2025-06-18') && !atLeast('2025-03-26', '2025-06-18')
  )
  t.same([...legacyRevisions].sort(), legacyRevisions, 'text order is age order')
})

t.test('the error table keeps to the codes that the specification leaves us, and to real statuses', async (t) => {
  // Of the range that the specification keeps to itself, only those that it has given a meaning (2026-07-28 basic/index
  // "Error Codes").
  const standard = new Set([-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022])
  for (const [code, row] of Object.entries(errorTable)) {
    const rpcCode = rpcCodeOf(code as ErrorCode)
    t.ok(standard.has(rpcCode) || rpcCode === row.status, `${code} ${rpcCode}`)
    t.ok(row.status === 200 || (row.status >= 400 && row.status < 600))
    t.match(row.meaning, /\.$/)
    const { data, message } = errorObject(
      new GatewayError(code as ErrorCode, 'What to do.', { cause: new Error('canary'), data: { a: 1 } }),
      'r1'
    )
    const told = code === 'unknown_resource' ? { a: 1 } : { reason: code, a: 1, requestId: 'r1' }
    t.same({ data, message }, { data: told, message: 'What to do.' })
  }
})

t.test('what is not ours says nothing of itself', async (t) => {
  for (const thrown of [new Error('canary'), 'canary', { message: 'canary' }, undefined, null]) {
    const object = errorObject(thrown, 'r1')
    t.equal(object.code, -32603)
    t.match(object.message, /r1/)
    t.notMatch(JSON.stringify(object), /canary/)
  }
  const theirs = { code: -32050, message: 'theirs', data: [1] }
  t.equal(errorObject(new RpcError(theirs), 'r1'), theirs, "while an upstream's own error passes as it came")
})
