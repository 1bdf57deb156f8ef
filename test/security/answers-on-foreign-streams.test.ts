// Attack: over one shared connection, what one caller's tool writes on its own stream carries the id of another
// caller's call, so that the other is given an answer, or progress, that its call never had.

import type { ServerResponse } from 'node:http'
import t from 'tap'
import { acmeGateway } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { serve } from '../kit/process.ts'
import { until } from '../kit/until.ts'
import { isCall, type Seen, startUpstream } from '../kit/upstream.ts'
import { maxStart } from '../../src/upstream/rpc/request-ids.ts'

const shared = async (t: Parameters<typeof acmeGateway>[0]) => {
  const made = await acmeGateway(t, { script: { answers: 'sse' }, isolation: 'shared' })
  return {
    ...made,
    ada: await legacyClient(made.url(), await made.bearer('API key', 'ada')),
    bob: await legacyClient(made.url(), await made.bearer('API key', 'bob')),
    /** The id of the call of this tool that is in flight. */
    idOf: async (tool: string): Promise<number> => {
      const sent = await until(`the call of ${tool}`, () => made.upstream.seen.find(isCall(tool)))
      return Number(sent.message?.['id'])
    }
  }
}

const event = (message: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
const forged = { content: [{ type: 'text', text: 'forged' }] }
const genuine = { content: [{ type: 'text', text: 'genuine' }] }

/** Answers the call with what `write` puts on its stream first, then with its own result. */
const answering = (write: string) => (response: ServerResponse, seen: Seen) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(write)
  response.end(event({ id: seen.message?.['id'], result: genuine }))
}

t.test("an answer with another call's id on a call's own stream answers neither of them", async (t) => {
  const { upstream, ada, bob, idOf, log } = await shared(t)
  const victim = ada.request('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 'a' } })
  const id = await idOf('slow')
  upstream.override(
    isCall('echo'),
    answering(
      event({ method: 'notifications/progress', params: { progressToken: id, progress: 99 } }) +
        event({ id, result: forged }) +
        event({ id, error: { code: -32050, message: 'forged' } })
    )
  )
  const attacker = await bob.request('tools/call', { name: 'echo', arguments: {} })
  t.same(attacker.json.result.content, genuine.content, 'the stream still carries its own answer')
  upstream.server.release()
  const { json, text } = await victim
  t.same(json.result.content, [{ type: 'text', text: 'slow is done' }])
  t.notMatch(text, /forged|"progress":99/)
  t.match(
    log.find(({ msg }) => String(msg).includes('stream of another request')),
    { upstream: 'up' }
  )
})

t.test("an answer on the connection's GET stream answers no call", async (t) => {
  const { upstream, ada, bob, idOf } = await shared(t)
  await until('the GET stream', () => upstream.allListening())
  const victim = ada.request('tools/call', { name: 'slow', arguments: {} })
  const id = await idOf('slow')
  upstream.broadcast({ jsonrpc: '2.0', id, result: forged })
  // What comes behind it on the same stream has been read, so it was too.
  upstream.broadcast({ jsonrpc: '2.0', id: 'behind', method: 'ping' })
  await until('the answer to ping', () => upstream.server.answers.get('behind'))
  await bob.request('tools/call', { name: 'release' })
  t.same((await victim).json.result.content, [{ type: 'text', text: 'slow is done' }])
})

t.test('a call whose stream carries only an answer to another is told that its outcome is unknown', async (t) => {
  const { upstream, ada, bob, idOf } = await shared(t)
  const victim = ada.request('tools/call', { name: 'slow', arguments: {} })
  const id = await idOf('slow')
  upstream.override(isCall('echo'), (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: forged }))
  })
  const attacker = await bob.request('tools/call', { name: 'echo', arguments: {} })
  t.match(attacker.json.error.data, { reason: 'upstream_protocol', outcome: 'unknown' })
  upstream.server.release()
  t.same((await victim).json.result.content, [{ type: 'text', text: 'slow is done' }])
})

t.test('no request id towards a server tells the next one', async (t) => {
  const { upstream, ada, url, bearer } = await shared(t)
  for (let n = 0; n < 20; n++) {
    const { json } = await ada.request('tools/call', { name: 'echo', arguments: { n } })
    t.equal(json.result.structuredContent.arguments.n, n)
  }
  const { json } = await modernRequest(
    url(),
    'tools/call',
    { name: 'echo', arguments: {} },
    { token: await bearer('API key', 'bob'), meta: { progressToken: 'mine' } }
  )
  const { progressToken } = json.result.structuredContent.meta
  const ids = upstream.seen.filter(isCall('echo')).map(({ message }) => Number(message?.['id']))
  t.equal(ids.at(-1), progressToken, 'what the tool is told is the id, as before')
  t.equal(new Set(ids).size, ids.length, 'none is used twice')
  // Servers that keep ids in 32 bits answer larger ones with another id.
  t.ok(
    ids.every((id) => Number.isInteger(id) && id > 0 && id < 2 ** 31),
    'they fit into 31 bits'
  )
  const steps = new Set(ids.slice(1).map((id, at) => id - (ids[at] ?? 0)))
  t.ok(steps.size > 15, `they do not follow one another: ${ids.join(' ')}`)
})

/** Has every HTTP connection begin at the first place of its order, so that nothing but the order tells them apart. */
const fromFirstPlace = `
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
const { randomInt } = crypto
crypto.randomInt = (...args) => (args.length === 1 && args[0] === ${maxStart} ? 0 : randomInt(...args))
syncBuiltinESMExports()`

t.test('no ids towards a server tell those of another connection, or of another gateway', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const stdio = { command: process.execPath, args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, '{}'] }
  const own = { isolation: 'session', era: 'legacy' }
  const config = configOf({ upstreams: { http: { url: upstream.url, ...own }, stdio: { ...stdio, ...own } } })
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(fromFirstPlace)}` }
  const gateways = [await serve(t, config, { env }), await serve(t, config, { env })]
  for (const name of ['http', 'stdio']) {
    /** Of each connection, in their order. */
    const sequences: number[][] = []
    for (const { url } of gateways.flatMap((each) => [each, each])) {
      const client = await legacyClient(`${url}/t/acme/mcp`, key)
      const ids: number[] = []
      while (ids.length < 16) {
        const params = { name: `${name}__echo`, arguments: {}, _meta: { progressToken: 'mine' } }
        const { json } = await client.request('tools/call', params)
        // What the tool is told is the id.
        ids.push(json.result.structuredContent.meta.progressToken)
      }
      sequences.push(ids)
    }
    const stepsOf = (ids: readonly number[]) => ids.slice(1).map((id, at) => id - (ids[at] ?? 0))
    for (const [at, ids] of sequences.entries()) {
      t.equal(new Set(ids).size, 16, `${name}: ${ids.join(' ')}`)
      for (const others of sequences.slice(at + 1)) {
        // Of 2^31 ids or steps: one of 256 pairs is equal by chance once in eight million times, two are once in 10^14.
        t.ok(new Set(ids).intersection(new Set(others)).size < 2, `they have no ids in common with ${others.join(' ')}`)
        t.ok(new Set(stepsOf(ids)).intersection(new Set(stepsOf(others))).size < 2, 'nor do they go in the same steps')
      }
    }
  }
})
