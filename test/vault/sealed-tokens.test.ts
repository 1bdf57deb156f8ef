// All that upstreams are shown of people is sealed in the vault: whoever reads the store finds nothing of it, also with
// the key that lies there beside it.

import { createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import pino from 'pino'
import t from 'tap'
import { sealKeyKey } from '../../src/store/keys.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { createSealer } from '../../src/store/seal.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer, robot } from '../kit/authorization-server.ts'
import { browser } from '../kit/browser.ts'
import { legacyClient } from '../kit/client.ts'
import { connectAccount, submit } from '../kit/connect-page.ts'
import { gateway } from '../kit/gateway.ts'
import { issuer } from '../kit/issuer.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'

/** Every text of every value, whatever its type. */
async function textsIn(url: string): Promise<string[]> {
  const client = new Redis(url)
  const texts: string[] = []
  for (const key of await client.keys('*')) {
    const type = await client.type(key)
    if (type === 'string') texts.push((await client.get(key)) ?? '')
    else if (type === 'list') texts.push(...(await client.lrange(key, 0, -1)))
    else if (type === 'hash') texts.push(...Object.values(await client.hgetall(key)))
    else throw new Error(`a ${type} at ${key}`)
  }
  client.disconnect()
  return texts
}

/** What the key of the store makes of a text, whatever it was bound to: the tag is not looked at. */
function openedWith(root: string, text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < 28) return ''
  const key = Buffer.from(hkdfSync('sha256', Buffer.from(root, 'base64url'), '', 'gatehouse encryption', 32))
  return createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).update(bytes.subarray(12, -16)).toString()
}

t.test('the store shows no token and no key, as it is and opened with its own key', async (t) => {
  const store = (await redis(t)).url
  const idp = await issuer(t, { clients: ['ada'] })
  const server = await authorizationServer(t, { registration: true })
  const [exchanged, machine, account] = await Promise.all(
    [idp, server, server].map((each) => protectedUpstream(t, each))
  )
  const plain = await startUpstream()
  t.teardown(() => plain.close())
  const secret = 'a-key-that-ada-has-entered'
  const authOf = {
    exchanged: { type: 'tokenExchange', issuer: idp.url, ...idp.exchanger },
    machine: { type: 'clientCredentials', issuer: server.url, clientId: 'robot', clientSecret: robot.client_secret },
    account: { type: 'user' },
    plain: { type: 'userSecret', header: 'X-Api-Key', prefix: '' }
  }
  const urlOf = { exchanged: exchanged?.url, machine: machine?.url, account: account?.url, plain: plain.url }
  const names = Object.keys(authOf) as Array<keyof typeof authOf>
  const made = await gateway(t, {
    upstreams: Object.fromEntries(names.map((name) => [name, { type: 'http', url: urlOf[name], auth: authOf[name] }])),
    auth: { issuers: [{ issuer: idp.url }], keys: [{ name: 'ada', key: keyOf.ada }] },
    store,
    top: {
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: ['127.0.0.0/8'] }
    }
  })
  const call = (token: string, upstream: string) =>
    modernRequest(made.url(), 'tools/call', { name: `${upstream}__echo`, arguments: { text: 'hello' } }, { token })

  const tab = browser()
  const page = (upstream: string) => tab.go(`${made.publicUrl}/t/acme/connections?upstream=${upstream}`, 'none')
  await submit(tab, await page('plain'), 'sign-in', { key: keyOf.ada })
  await submit(tab, await page('plain'), 'secret', { secret })
  t.match((await connectAccount(tab, await page('account'))).html, /account is connected/)
  const token = await idp.token({ clientId: 'ada', resource: made.url() })
  t.ok((await call(token, 'exchanged')).json.result)
  t.ok((await legacyClient(made.url(), token)).sessionId)
  for (const name of ['machine', 'account', 'plain'] as const) t.ok((await call(keyOf.ada, name)).json.result, name)

  const presented = [exchanged, machine, account].map((each) => each?.presented.at(-1)?.replace('Bearer ', '') ?? '')
  const refresh = server.issued.at(-1)?.refresh ?? server.issued[0]?.refresh ?? ''
  const canaries = [token, ...presented, refresh, secret, keyOf.ada, String(robot.client_secret)]
  for (const canary of canaries) t.ok(canary.length > 20)
  const texts = await textsIn(store)
  t.ok(texts.filter((text) => text.startsWith('ey')).length >= 4, 'and what people have is there, sealed')
  const log = pino({ level: 'silent' })
  const kept = await createRedisStore({ url: store, clock: wallClock, log })
  t.teardown(() => kept.close())
  const root = (await kept.get(sealKeyKey)) ?? ''
  const found = (all: readonly string[]): string[] => {
    const opened = all.flatMap((text) => [text, openedWith(root, text)])
    return canaries.filter((canary) => opened.some((text) => text.includes(canary)))
  }
  t.same(found(texts), [])
  const sealer = await createSealer({ store: kept, randomBytes, timer: steadyClock.timer, log })
  t.teardown(() => sealer.close())
  const sealed = canaries.map((canary) => sealer.seal('any', ['thing'], canary))
  t.same(found([...texts, ...sealed]), canaries, 'this is how one would be found')
})
