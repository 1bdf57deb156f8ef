// Attack: the caller's credential is looked for beyond the gateway: at an upstream, in a child process, in a log, the
// store or an answer.

import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { acmeGateway, credentials } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'

for (const kind of credentials) {
  t.test(`no trace of the ${kind} is found beyond the gateway`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-canary-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const acme = await acmeGateway(t, {
      store: `file:${join(folder, 'store.db')}`,
      upstreams: {
        web: { type: 'http', url: upstream.url, headers: { 'X-Own-Key': 'own-canary' } },
        child: {
          command: process.execPath,
          args: [join(import.meta.dirname, '../kit/stdio-server.ts')],
          env: { OWN: 'own-canary' }
        }
      },
      endpoints: { default: { upstreams: ['web', 'child'] } }
    })
    const token = await acme.bearer(kind)
    const client = await legacyClient(acme.url(), token)
    const told: string[] = []
    const say = async (method: string, params?: unknown) => {
      const { text } = await client.request(method, params)
      told.push(text)
      return text
    }
    for (const up of ['web', 'child']) {
      for (const tool of ['echo', 'progress', 'fail', 'rpcerror', 'content', 'nope'])
        await say('tools/call', { name: `${up}__${tool}`, arguments: {}, _meta: { progressToken: 1 } })
      await say('prompts/get', { name: `${up}__greet` })
      await say('resources/read', { uri: `gatehouse://${up}/test://one` })
    }
    await say('tools/list')
    await say('no/such')
    const stream = await client.listen()
    for (const headers of [
      { authorization: `Bearer ${token}x` },
      { 'mcp-session-id': '*' },
      { authorization: `Basic ${token}` },
      { cookie: `token=${token}` }
    ]) {
      told.push((await send(acme.url(), { headers: { ...client.headers, ...headers }, body: '{"canary' })).text)
    }
    told.push((await send(`${acme.url()}?access_token=${token}`, { headers: client.headers, body: '{}' })).text)
    const environment = await say('tools/call', { name: 'child__env' })
    stream.close()
    await client.end()
    const files = readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'latin1'))
      .join('')
    await acme.close()

    const places = {
      upstream: JSON.stringify(upstream.seen),
      answers: told.join(''),
      log: JSON.stringify(acme.log),
      store:
        files +
        readdirSync(folder)
          .map((name) => readFileSync(join(folder, name), 'latin1'))
          .join('')
    }
    for (const [place, text] of Object.entries(places)) {
      for (const part of token.split('.').concat(client.sessionId))
        t.notOk(text.includes(part), `${place}: ${part.slice(0, 12)}`)
      t.ok(text.length > 100, `${place} holds something`)
    }
    t.ok(places.upstream.includes('own-canary'), 'while the upstream got its own key')
    t.ok(environment.includes('own-canary'), 'and the child its own variable')
    t.notOk(places.log.includes('own-canary'))
    t.notOk(places.log.includes('{"canary'), 'and no body is logged')
  })
}
