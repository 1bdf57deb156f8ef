// Error -32042 of a server of 2025-11-25 for a client without elicitation by URL: how each request ends.

import t from 'tap'
import { RpcError } from '../../src/protocol/messages.ts'
import { relaySetup, tool } from './kit.ts'

const page = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect', message: 'Please connect' }

t.test(
  'a prompt, a resource and a call as a task end with an error that says what is missing; a tool call with a result',
  async (t) => {
    const setup = await relaySetup(t, {
      doubles: {
        up: {
          tools: [tool('x')],
          prompts: [{ name: 'p' }],
          resources: [{ uri: 'test://r', name: 'r' }],
          capabilities: { tools: {}, prompts: {}, resources: {}, tasks: { requests: { tools: { call: {} } } } },
          answer() {
            throw new RpcError({ code: -32042, message: 'Connect first', data: { elicitations: [page] } })
          }
        },
        other: {}
      },
      endpoints: { default: { upstreams: ['up', 'other'] } }
    })
    const ada = await setup.person()
    const refused = {
      code: 'client_lacks_capability',
      message: /up wants a web page.*\nhttps:\/\/up\.example\/connect \(Please connect\)/,
      data: { requiredCapabilities: { elicitation: { url: {} } }, upstream: 'up' }
    }
    await t.rejects(ada.call('prompts/get', { name: 'up__p' }), refused)
    await t.rejects(ada.call('resources/read', { uri: 'gatehouse://up/test://r' }), refused)
    await t.rejects(ada.call('tools/call', { name: 'up__x', task: {} }), refused, 'a result would be taken for a task')
    t.match(await ada.call('tools/call', { name: 'up__x' }), {
      isError: true,
      content: [{ type: 'text', text: refused.message }]
    })

    const { session } = ada.live
    ada.live.session = { ...session, record: { ...session.record, capabilities: { elicitation: { url: {} } } } }
    const shown = new RpcError({
      code: -32042,
      message: 'Connect first',
      data: { elicitations: [{ ...page, message: '[up] Please connect', elicitationId: 'up:e-1' }] }
    })
    for (const [method, params] of [
      ['prompts/get', { name: 'up__p' }],
      ['resources/read', { uri: 'gatehouse://up/test://r' }],
      ['tools/call', { name: 'up__x', task: {} }],
      ['tools/call', { name: 'up__x' }]
    ] as const) {
      await t.rejects(ada.call(method, params), shown, `${method}: a client with elicitation by URL gets the error`)
    }
  }
)
