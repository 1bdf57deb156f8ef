// A name costs a caller nothing, and its upstream a session: `_meta["io.gatehouse/conversation"]`, invented without end on whatever takes
// it. All of them count together, and another caller does not notice.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import type { ModernStream } from '../kit/modern-listen.ts'
import type { Json } from '../kit/mcp-server.ts'

const named = (name: string): Json => ({ 'io.gatehouse/conversation': name })
const wanted = { resourceSubscriptions: ['test://one'] }

t.test('listen streams, completions and calls with ever new names open no more sessions than a caller may have', async (t) => {
  const house = await acme(t, { limits: { sessionsPerPrincipal: 4 } })
  const opened = (): number => house.upstream.server.received.filter(({ method }) => method === 'initialize').length
  const ask = async (token: string, method: string, params: Json, name: string): Promise<any> => (await modernRequest(house.url(), method, params, { token, meta: named(name) })).json // eslint-disable-line typescript/no-explicit-any
  const listen = async (token: string, name: string): Promise<{ stream: ModernStream, granted: unknown }> => {
    const stream = await modernListen(house.url(), wanted, { token, meta: named(name) })
    t.teardown(() => stream.close())
    return { stream, granted: (await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')).params.notifications }
  }
  await ask(keyOf.ada, 'tools/list', {}, 'any')
  const before = opened()
  for (let n = 0; n < 2; n++) t.same((await listen(keyOf.ada, `stream ${n}`)).granted, wanted)
  const complete = (name: string): Promise<any> => ask(keyOf.ada, 'completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } }, name) // eslint-disable-line typescript/no-explicit-any
  for (let n = 0; n < 2; n++) t.match(await complete(`completion ${n}`), { result: { resultType: 'complete' } })
  t.equal(opened(), before + 4)
  for (let n = 2; n < 12; n++) {
    t.same((await listen(keyOf.ada, `stream ${n}`)).granted, {})
    t.match(await complete(`completion ${n}`), { error: { data: { reason: 'too_many' } } })
    t.match(await ask(keyOf.ada, 'tools/call', { name: 'echo' }, `call ${n}`), { error: { data: { reason: 'too_many' } } })
  }
  t.equal(opened(), before + 4, 'nothing more was opened')
  t.match(await ask(keyOf.ada, 'tools/call', { name: 'echo' }, 'stream 1'), { result: { resultType: 'complete' } }, 'what there is serves on')
  t.same((await listen(keyOf.bob, 'stream 0')).granted, wanted)
  t.match(await ask(keyOf.bob, 'tools/call', { name: 'echo' }, 'call'), { result: { resultType: 'complete' } })
})
