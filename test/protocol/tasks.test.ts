// Task ids are replaced where they stand and nowhere else; a message without one is the very same object.

import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../src/protocol/messages.ts'
import {
  isTaskOver,
  readTask,
  relatedTaskKey,
  withCreatedTask,
  mapRelatedTask,
  withTaskId,
  withTaskList,
  withoutTaskSupport
} from '../../src/protocol/translate/tasks.ts'
import { runs } from '../kit/runs.ts'

const marked = (id: string): string => `public:${id}`
const anyObject = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom('task', 'tasks', '_meta', 'taskId')),
  fc.jsonValue()
) as fc.Arbitrary<JsonObject>

t.test('nothing to replace: the very same object', async (t) => {
  const same = (id: string): string => id
  fc.assert(
    fc.property(anyObject, (value) =>
      [withTaskId, mapRelatedTask, withCreatedTask].every((replace) => replace(value, same) === value)
    ),
    { numRuns: runs(1_000) }
  )
  t.equal(mapRelatedTask(undefined, marked), undefined)
  for (const meta of [
    undefined,
    null,
    7,
    {},
    { [relatedTaskKey]: null },
    { [relatedTaskKey]: {} },
    { [relatedTaskKey]: { taskId: 7 } },
    { taskId: 'a' }
  ]) {
    const value = { _meta: meta, taskId: 'a', task: { taskId: 'a' } }
    t.equal(mapRelatedTask(value, marked), value)
  }
})

t.test('where they stand', async (t) => {
  t.same(withTaskId({ taskId: 'a', x: { taskId: 'a' } }, marked), { taskId: 'public:a', x: { taskId: 'a' } })
  t.same(withCreatedTask({ task: { taskId: 'a', ttl: null, x: 1 }, taskId: 'a' }, marked), {
    task: { taskId: 'public:a', ttl: null, x: 1 },
    taskId: 'a'
  })
  t.same(mapRelatedTask({ content: [], _meta: { [relatedTaskKey]: { taskId: 'a', x: 1 }, taskId: 'a' } }, marked), {
    content: [],
    _meta: { [relatedTaskKey]: { taskId: 'public:a', x: 1 }, taskId: 'a' }
  })
  t.same(
    withTaskList(
      { tasks: [{ taskId: 'a', x: 1 }, { taskId: 'b' }, null, { taskId: 7 }, 'a'], nextCursor: 'a' },
      (id) => id === 'a',
      marked
    ),
    { tasks: [{ taskId: 'public:a', x: 1 }], nextCursor: 'a' }
  )
  t.same(
    withTaskList({}, () => true, marked),
    { tasks: [] }
  )
})

t.test('the state of a task', async (t) => {
  t.same(readTask({ taskId: 'a', status: 'failed', ttl: 5, more: 1 }), { taskId: 'a', status: 'failed', ttl: 5 })
  t.same(readTask({ taskId: 'a', ttl: null }), { taskId: 'a', status: 'working', ttl: undefined })
  t.equal(readTask({ taskId: 'x'.repeat(1_024) })?.taskId.length, 1_024)
  t.equal(readTask({ taskId: 'x'.repeat(1_025) }), undefined, 'too long for an id')
  for (const none of [undefined, null, 'a', [], {}, { taskId: 7 }]) t.equal(readTask(none), undefined)
  const final = (status: string): boolean => isTaskOver({ status })
  t.ok(['completed', 'failed', 'cancelled'].every(final))
  t.notOk(['working', 'input_required', 'new one', ''].some(final))
})

t.test('a tool without task support is otherwise as it was', async (t) => {
  t.same(withoutTaskSupport({ name: 'x', execution: { taskSupport: 'required', more: 1 }, taskSupport: 'own' }), {
    name: 'x',
    execution: { more: 1 },
    taskSupport: 'own'
  })
  for (const tool of [
    { name: 'x' },
    { execution: {} },
    { execution: null },
    { execution: 'x' },
    { execution: ['taskSupport'] }
  ])
    t.equal(withoutTaskSupport(tool), tool)
})
