// What people have given, in the store: under keys that can be changed, bound to its place, and gone with its tenant.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request as forward, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway, type TestGateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { grantKey, sessionEndsKey, vaultKeyKey } from '../../src/store/keys.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { wallClock } from '../../src/time/clock.ts'
import pino from 'pino'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }
const vaultKey = (id: string) => ({ id, key: randomBytes(32).toString('base64') })
const [k1, k2, k3] = ['k1', 'k2', 'k3'].map(vaultKey)

async function setup(t: Test, gateways = 1, store?: string) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const url = store ?? (await redis(t)).url
  const options = (keys: unknown[] = [k1]): TestGatewayOptions => ({
    upstreams: {
      up: { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
    },
    auth: { keys: (['ada', 'bob'] as const).map((name) => ({ name, key: keyOf[name] })) },
    store: url,
    top: { vault: { keys } }
  })
  const all: TestGateway[] = []
  for (let n = 0; n < gateways; n++) all.push(await gateway(t, options()))
  return { upstream, options, all: all as [TestGateway, ...TestGateway[]], url }
}

async function enter(made: TestGateway, name: 'ada' | 'bob', secret: string) {
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf[name])
  return { tab, page: await submit(tab, page, 'secret', { secret }) }
}

async function call(made: TestGateway, name: 'ada' | 'bob' = 'ada'): Promise<boolean> {
  const client = await legacyClient(made.url(), keyOf[name])
  const { json, text } = await client.request('tools/call', echo)
  if (json.result?.isError === true || json.error !== undefined) return !/connect/i.test(text) && Promise.reject(text)
  return true
}

t.test('the key of the vault is changed at two processes while people call', async (t) => {
  const { all, options, upstream } = await setup(t, 2)
  const [one, two] = all as [TestGateway, TestGateway]
  await enter(one, 'ada', 'the-secret-of-ada')
  const over = new AbortController()
  let calls = 0
  const load = all.map(async (made) => {
    const client = await legacyClient(made.url(), keyOf.ada)
    while (!over.signal.aborted) {
      const { json, text } = await client.request('tools/call', echo)
      if (json.result === undefined || json.result.isError === true) throw new Error(text)
      calls++
    }
  })
  const some = async (): Promise<void> => {
    const before = calls
    await until('calls go on', () => calls > before + 20)
  }
  // Known everywhere before it is first anywhere.
  for (const keys of [
    [k1, k2],
    [k2, k1]
  ])
    for (const made of [one, two]) {
      made.reload(configOf(options(keys)))
      await some()
    }
  for (const made of [one, two])
    await until('the log says that the key before is needed no more', () =>
      made.log.some(({ msg, kid }) => kid === 'k2' && /can be taken out/.test(String(msg)))
    )
  over.abort()
  await Promise.all(load)
  const last = await gateway(t, options([k2]))
  t.ok(await call(last), 'the key before is needed no more once the new one was first')
  t.same([...new Set(upstream.seen.map(({ headers }) => headers['x-api-key']))], ['the-secret-of-ada'])
  const other = await gateway(t, options([k3]))
  const refused = await (await legacyClient(other.url(), keyOf.ada)).request('tools/call', echo)
  t.match(refused.json.error.data, { reason: 'upstream_unavailable', upstream: 'up' })
  t.ok(other.log.some(({ msg }) => /sealed with the key k2 of the vault, not configured/.test(String(msg))))
})

t.test('what one process disconnects is of no use at the other one at once', async (t) => {
  const { all } = await setup(t, 2)
  const [one, two] = all as [TestGateway, TestGateway]
  const { tab, page } = await enter(one, 'ada', 'the-secret-of-ada')
  const ada = await legacyClient(two.url(), keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result.content)
  const listening = await ada.listen()
  await submit(tab, page, 'disconnect')
  await listening.next(({ method }) => method === 'notifications/tools/list_changed')
  t.match((await ada.request('tools/call', echo)).text, /Connect your account/)
})

t.test('a value that was moved to the place of somebody else is nobody’s', async (t) => {
  const { all, url } = await setup(t)
  await enter(all[0], 'ada', 'the-secret-of-ada')
  const store = await createRedisStore({ url, clock: wallClock, log: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  const place = (name: string, upstream = 'up') => grantKey('acme', 'urn:gatehouse:key', name, upstream)
  const own = await store.get(place('ada'))
  t.type(own, 'string')
  await store.set(place('bob'), own ?? '')
  t.notOk(await call(all[0], 'bob'))
  t.ok(all[0].log.some(({ msg }) => /cannot be opened/.test(String(msg))))
  t.ok(await call(all[0], 'ada'), 'at its own place it is good')
  // That of another tenant does not open it either.
  const key = await store.get(vaultKeyKey('acme'))
  await store.set(vaultKeyKey('other'), key ?? '')
  const other = await gateway(t, {
    upstreams: {},
    store: url,
    top: { vault: { keys: [k1] } },
    tenants: {
      other: {
        auth: { keys: [{ name: 'ada', key: keyOf.bob }] },
        upstreams: {
          up: { type: 'http', url: 'http://127.0.0.1:1/mcp', auth: { type: 'userSecret', header: 'X-Api-Key' } }
        }
      }
    }
  })
  await store.set(grantKey('other', 'urn:gatehouse:key', 'ada', 'up'), own ?? '')
  const refused = await fetch(`${other.publicUrl}/t/other/connections`, {
    headers: { authorization: `Bearer ${keyOf.bob}` }
  })
  t.match(await refused.text(), /cannot open the key of this tenant/)
  t.ok(other.log.some(({ err }) => /that of another tenant/.test(JSON.stringify(err))))
})

t.test('a tenant that was removed and made again has nothing of what its people gave before', async (t) => {
  const { all, options } = await setup(t)
  const [made] = all
  await enter(made, 'ada', 'the-secret-of-ada')
  t.ok(await call(made))
  made.reload(configOf({ ...options(), limits: { sessionsPerPrincipal: 50 } }))
  t.ok(await call(made), 'any other reload changes nothing')
  const { tenants, ...rest } = configOf(options()) as { tenants: Record<string, unknown> }
  made.reload({ ...rest, tenants: { other: tenants['acme'] } })
  made.reload(configOf(options()))
  t.notOk(await call(made))
  await enter(made, 'ada', 'of the next ada')
  t.ok(await call(made), 'and keeps what they give now')
  await made.close()
  t.ok(await call(await gateway(t, options())), 'for good')
})

t.test('a store that has lost the end of sessions has lost no account', async (t) => {
  const { all, options, url } = await setup(t)
  const [made] = all
  const { tab, page } = await enter(made, 'ada', 'the-secret-of-ada')
  t.ok(page.html)
  t.ok(await call(made))
  const store = await createRedisStore({ url, clock: wallClock, log: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  // A session ends, and the store forgets that it did.
  const client = await legacyClient(made.url(), keyOf.ada)
  await client.end()
  await store.delete(sessionEndsKey('acme'))
  t.ok(await call(made))
  t.ok(made.log.some(({ msg }) => /has lost the end of sessions/.test(String(msg))))
  t.match((await tab.go(`${made.publicUrl}/t/acme/connections`, 'none')).html, /Your API key/)
  t.ok(await call(await gateway(t, options())))
})

t.test('what nothing can open is disconnected all the same', async (t) => {
  const { all, options, url } = await setup(t)
  const [made] = all
  const { tab } = await enter(made, 'ada', 'the-secret-of-ada')
  const page = () => tab.go(`${made.publicUrl}/t/acme/connections`, 'none')
  made.reload(configOf(options([k3])))
  const unopened = await page()
  t.match(unopened.html, /cannot open the key of this tenant/)
  await submit(tab, unopened, 'disconnect')
  const store = await createRedisStore({ url, clock: wallClock, log: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  t.equal(await store.get(grantKey('acme', 'urn:gatehouse:key', 'ada', 'up')), undefined)
  t.notMatch((await page()).html, /cannot open/, 'there is nothing to open any more')
  made.reload(configOf(options()))
  t.notOk(await call(made), 'and with the right key it does not come back')
  await enter(made, 'ada', 'another secret')
  t.ok(await call(made))
})

t.test('a key that was replaced during a call is used from the next one on', async (t) => {
  const inner = await startUpstream()
  t.teardown(() => inner.close())
  let release: () => void = () => {}
  let held = false
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    if (request.headers['x-api-key'] === 'the key of before' && body.includes('tools/call')) {
      held = true
      await new Promise<void>((resolve) => {
        release = resolve
      })
      return void response.writeHead(401).end()
    }
    const { method = 'GET', headers } = request
    const onward = forward(inner.url, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    response.on('close', () => onward.destroy())
    onward.on('error', () => response.destroy())
    onward.end(body)
  }
  const front = await listen(
    t,
    createServer((request, response) => void answer(request, response))
  )
  const made = await gateway(t, {
    upstreams: {
      up: { type: 'http', url: `${front}/mcp`, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
    },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    top: { vault: { keys: [k1] } }
  })
  const { tab } = await enter(made, 'ada', 'the key of before')
  const client = await legacyClient(made.url(), keyOf.ada, '2025-11-25', { elicitation: { url: {} } })
  const refused = client.request('tools/call', echo)
  await until('the call is there', () => held)
  const page = () => tab.go(`${made.publicUrl}/t/acme/connections`, 'none')
  await submit(tab, await page(), 'secret', { secret: 'the key of now' })
  release()
  const { error } = (await refused).json
  t.match(error, { message: /Call again: the new one is used/, data: { reason: 'upstream_unavailable' } })
  t.notMatch((await page()).html, /does not accept/, 'the new one is not called refused')
  t.ok((await client.request('tools/call', echo)).json.result)
  t.equal(inner.seen.at(-1)?.headers['x-api-key'], 'the key of now')
})
