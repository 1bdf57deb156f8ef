// Attack: a caller invents conversation names without end. A name costs the caller nothing and its server a session,
// so all names of a caller count together.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../kit/modern-listen.ts'
import type { Json } from '../kit/mcp-server.ts'

const named = (name: string): Json => ({ 'io.gatehouse/conversation': name })
const wanted = { resourceSubscriptions: ['test://one'] }

t.test(
  'listen streams, completions and calls with ever new names open no more sessions than a caller may have',
  async (t) => {
    const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 4 } })
    const opened = (): number => acme.upstream.server.received.filter(({ method }) => method === 'initialize').length
    // eslint-disable-next-line typescript/no-explicit-any
    const ask = async (token: string, method: string, params: Json, name: string): Promise<any> =>
      (await modernRequest(acme.url(), method, params, { token, meta: named(name) })).json
    const listen = async (token: string, name: string): Promise<{ stream: ModernStream; granted: unknown }> => {
      const stream = await modernListen(acme.url(), wanted, { token, meta: named(name) })
      t.teardown(() => stream.close())
      return {
        stream,
        granted: (await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')).params
          .notifications
      }
    }
    await ask(keyOf.ada, 'tools/list', {}, 'any')
    const before = opened()
    for (let n = 0; n < 2; n++) t.same((await listen(keyOf.ada, `stream ${n}`)).granted, wanted)
    // eslint-disable-next-line typescript/no-explicit-any
    const complete = (name: string): Promise<any> =>
      ask(
        keyOf.ada,
        'completion/complete',
        { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } },
        name
      ) // eslint-disable-line typescript/no-explicit-any
    for (let n = 0; n < 2; n++) t.match(await complete(`completion ${n}`), { result: { resultType: 'complete' } })
    t.equal(opened(), before + 4)
    for (let n = 2; n < 12; n++) {
      t.same((await listen(keyOf.ada, `stream ${n}`)).granted, {})
      t.match(await complete(`completion ${n}`), { error: { data: { reason: 'too_many' } } })
      t.match(await ask(keyOf.ada, 'tools/call', { name: 'echo' }, `call ${n}`), {
        error: { data: { reason: 'too_many' } }
      })
    }
    t.equal(opened(), before + 4, 'nothing more was opened')
    t.match(
      await ask(keyOf.ada, 'tools/call', { name: 'echo' }, 'stream 1'),
      { result: { resultType: 'complete' } },
      'what there is serves on'
    )
    t.same((await listen(keyOf.bob, 'stream 0')).granted, wanted)
    t.match(await ask(keyOf.bob, 'tools/call', { name: 'echo' }, 'call'), { result: { resultType: 'complete' } })
  }
)
