// What a legacy server asks on its own account, such as the roots right after its handshake. On a connection of one
// caller, where input requests name no call, it goes to the only call that was sent and may be asked; else nobody is
// asked, and no later call either.

import t from 'tap'
import { gateway } from '../../kit/gateway.ts'
import { answersTo, replies, round, textOf } from '../../kit/parking-gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'

const { url } = await gateway(t, {
  upstreams: {
    eager: {
      command: process.execPath,
      args: [new URL('../../kit/roots-asking-server.ts', import.meta.url).pathname],
      era: 'legacy'
    }
  },
  endpoints: { default: { upstreams: ['eager'], prefix: '' } }
})
const told = { name: 'told' }
/** Each has a process of its own, which asks anew. */
const named = (conversation: string): Json => ({ 'io.gatehouse/conversation': conversation })

t.test('the call that waits for it is asked, and goes on with the answer', async (t) => {
  const meta = named('call')
  const first = await round(url(), 'tools/call', told, { meta })
  t.same(Object.values(first.inputRequests), [{ method: 'roots/list' }])
  const { result } = await round(
    url(),
    'tools/call',
    { ...told, requestState: first.requestState, inputResponses: answersTo(first.inputRequests) },
    { meta }
  )
  t.same(textOf(result), replies.roots)
  t.same(
    textOf((await round(url(), 'tools/call', told, { meta })).result),
    replies.roots,
    'later ones are not asked again'
  )
})

t.test('a request that cannot come back with input requests is asked nothing', async (t) => {
  const meta = named('completion')
  const { result } = await round(
    url(),
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'told' }, argument: { name: 'a', value: '' } },
    { meta }
  )
  t.match(result, { resultType: 'complete', completion: { values: [/"code":-32601/] } })
  t.match(
    textOf((await round(url(), 'tools/call', told, { meta })).result),
    { code: -32601 },
    'and the call after it neither'
  )
})

t.test('a call that was not sent yet is not asked', async (t) => {
  // The server hears of the log level first, and has asked before it answers that.
  const meta = { ...named('level'), 'io.modelcontextprotocol/logLevel': 'info' }
  const { result } = await round(url(), 'tools/call', told, { meta })
  t.match(result, { resultType: 'complete' })
  t.match(textOf(result), { code: -32601 })
})

t.test('a client that cannot be asked is not', async (t) => {
  t.match(textOf((await round(url(), 'tools/call', told, { capabilities: {}, meta: named('none') })).result), {
    code: -32601
  })
})
