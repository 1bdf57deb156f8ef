// A connection into a session that another process has: open as long as calls come.

import t from 'tap'
import { createBorrowedSessions } from '../../../src/relay/connections/borrowed-sessions.ts'
import type { BorrowedSessionsOptions } from '../../../src/relay/connections/borrowed-connections.ts'
import {
  callOf,
  handClock,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../../kit/connector.ts'
import { isMethod, startUpstream } from '../../kit/upstream.ts'

t.test('it is closed half a minute after the last call, and opened again with the next ones', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const [definition, clock] = [httpDefinition(peer.url), handClock()]
  const { pool, connector, log } = testConnector({ clock })
  t.teardown(() => pool.close())
  const place = { load: async () => undefined, keep: async () => true, forget() {}, end: async () => true }
  const owner = await connector.connect(definition, { ...handshake, place }, recordingEvents())
  const record = { home: 'home', owner: { tenant: 'acme' }, capabilities: {}, revision: '2025-11-25' }
  const session = { key: 'a session', tenant: 'acme', session: { record } }
  const bus = {
    node: 'borrower',
    serve() {},
    peers: { follow: () => () => {} },
    request: async (_to: string, _word: string, _whose: unknown, { has }: { readonly has?: string }) =>
      has === owner.sharing?.id() ? { same: true } : { lent: await owner.sharing?.lend() }
  }
  const live = { get: () => session, onDrop() {} }
  const borrowed = createBorrowedSessions({
    pool,
    bus,
    live,
    ...handshake,
    clock,
    log
  } as unknown as BorrowedSessionsOptions)
  t.teardown(borrowed.close)
  const use = () => borrowed.use(session as never, definition, { members: [] } as never)?.upstream
  const call = async () => await use()?.request(callOf('echo'), recordingClient(), never)
  const pings = (): number => peer.seen.filter(isMethod('ping')).length

  await until(() => use() !== undefined, 'it is borrowed')
  for (let n = 0; n < 20; n++) {
    await call()
    clock.advance(9_000)
    await until(() => use() !== undefined, 'it is lent again')
  }
  t.equal(pings(), 1, 'on one connection for three minutes')
  const scope = 'borrowed:a session:' + definition.hash
  clock.advance(27_000)
  t.ok(pool.peek(definition, scope), 'the control')
  clock.advance(10_000)
  await until(() => pool.peek(definition, scope) === undefined, 'it is closed')
  t.notOk(use())
  await until(() => use() !== undefined, 'it is borrowed again')
  t.match(await call(), { content: [{ type: 'text' }] })
  t.equal(pings(), 2)
})
