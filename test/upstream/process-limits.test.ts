// How many child processes may run: what calls leave to lists, and what a start at a limit waits for.

import t from 'tap'
import { handClock, handshake, never, recordingEvents, stdioDefinition, testConnector } from '../kit/connector.ts'

const smallServer = new URL('../kit/small-server.sh', import.meta.url).pathname
const definition = stdioDefinition({}, { command: '/bin/sh', args: [smallServer], era: 'legacy' })

t.test('calls leave an eighth of all processes to lists', async (t) => {
  const { connector, pool, supervisor } = testConnector({ maxProcesses: 8, maxPerTenant: 8 })
  t.teardown(() => pool.close())
  const connect = (use: 'calls' | 'listing') => connector.connect(definition, handshake, recordingEvents(), never, use)
  const open = await Promise.all(Array.from({ length: 7 }, () => connect('calls')))
  t.teardown(() => Promise.all(open.map((upstream) => upstream.close())))
  await t.rejects(connect('calls'), { code: 'too_many', message: /kept for other tenants and for lists/ })
  const list = await connect('listing')
  t.teardown(() => list.close())
  t.equal(supervisor.count(), 8, 'a list has the last one')
  await t.rejects(connect('listing'), { code: 'too_many', message: /limits\.processes \(8\) is reached/ })
})

t.test('a start at a limit waits for a process that is ending, and for nothing else', async (t) => {
  // Nothing that waits for a time comes to its end.
  const { connector, pool } = testConnector({ maxProcesses: 1, maxPerTenant: 1, clock: handClock() })
  t.teardown(() => pool.close())
  const connect = () => connector.connect(definition, handshake, recordingEvents(), never)
  const first = await connect()
  await t.rejects(connect(), { code: 'too_many' }, 'at once, where nothing is ending')
  const closing = first.close()
  const second = await connect()
  t.equal(second.name, 'files', 'and this one was waited for')
  await closing
  await second.close()
})
