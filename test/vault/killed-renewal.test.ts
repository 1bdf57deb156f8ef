// A process is killed when the authorization server has given new tokens for the old ones, and before it has stored
// them: the next call goes on where that is possible, and else says that the account has to be connected again.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { connectAccount, signedIn } from '../kit/connect-page.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { serve } from '../kit/process.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }
const withPages = { elicitation: { url: {} } }

for (const rotates of [true, false])
  t.test(
    `a process is killed in a renewal, at a server that ${rotates ? 'rotates' : 'does not rotate'} refresh tokens`,
    async (t) => {
      const server = await authorizationServer(t, { registration: true, rotates })
      const upstream = await protectedUpstream(t, server)
      const store = await redis(t)
      const config = configOf({
        upstreams: { up: { type: 'http', url: upstream.url, auth: { type: 'user' } } },
        auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
        store: store.url,
        top: {
          vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
          egress: { allow: ['127.0.0.0/8'] }
        }
      })
      const [first, second] = await Promise.all([serve(t, config), serve(t, config)])
      const connect = async (url: string) => {
        const { tab, page } = await signedIn(`${url}/t/acme/connections`, keyOf.ada)
        return await connectAccount(tab, page)
      }
      const clientAt = (url: string) => legacyClient(`${url}/t/acme/mcp`, keyOf.ada, '2025-11-25', withPages)
      t.match((await connect(first.url)).html, /up is connected/)
      const client = await clientAt(first.url)
      t.ok((await client.request('tools/call', echo)).json.result)

      for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
      const before = server.issued.length
      server.beforeTokens = async () => {
        first.signal('SIGKILL')
        await first.ended
      }
      await t.rejects(client.request('tools/call', echo), 'the call ends with its process')
      t.equal(server.issued.length, before + 1, 'the server has given new tokens, and nobody has them')
      const asked = server.tokenRequests.length

      const next = await clientAt(second.url)
      const { json: answer } = await next.request('tools/call', echo)
      if (rotates) {
        t.equal(answer.error?.code, -32042)
        t.match(answer.error.message, /has to be connected again: its provider does not accept it any more/)
        for (let n = 0; n < 3; n++) t.equal((await next.request('tools/call', echo)).json.error?.code, -32042)
      } else t.ok(answer.result)
      t.equal(server.tokenRequests.length - asked, 1, 'the server is asked once')
      if (rotates) t.match((await connect(second.url)).html, /up is connected/)
      t.ok((await next.request('tools/call', echo)).json.result)
      t.equal(upstream.server.calls('echo'), rotates ? 2 : 3, 'and no call is executed twice')
    }
  )
