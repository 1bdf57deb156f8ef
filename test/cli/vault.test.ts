// `vault rotate`, as somebody types it, while people call.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import pino from 'pino'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway, type TestGateway } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { vaultKeyKey } from '../../src/store/keys.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { wallClock } from '../../src/time/clock.ts'

const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')
const [k1, k2, k3] = ['k1', 'k2', 'k3'].map((id) => ({ id, key: randomBytes(32).toString('base64') }))
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const gatehouse = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [bin, ...args], (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    )
  })

t.test(
  'keys are changed by the command while people call at two processes, and the old one is needed no more',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const { url } = await redis(t)
    const options = (keys: unknown[]) => ({
      upstreams: {
        up: { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
      },
      auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
      store: url,
      top: { vault: { keys } }
    })
    const all: TestGateway[] = [await gateway(t, options([k1, k2])), await gateway(t, options([k1, k2]))]
    const { tab, page } = await signedIn(`${all[0]?.publicUrl}/t/acme/connections`, keyOf.ada)
    await submit(tab, page, 'secret', { secret: 'the-secret-of-ada' })

    const file = join(t.testdir(), 'gatehouse.json')
    const rotate = async (keys: unknown[]): Promise<Ended> => {
      writeFileSync(file, JSON.stringify(configOf(options(keys))))
      return await gatehouse('vault', 'rotate', '--config', file)
    }
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
    await some()
    t.match(await rotate([k2, k1]), {
      code: 0,
      out: '1 tenant wrapped anew with the key k2, 0 had it before, 0 failed\nNeeded no more, and can be taken out: k1\n'
    })
    await some()
    t.match(await rotate([k2, k1]), { code: 0, out: /^0 tenants wrapped anew .*, 1 had it before, 0 failed/ })
    for (const made of all) made.reload(configOf(options([k2])))
    await some()
    over.abort()
    await Promise.all(load)
    const fresh = await legacyClient((await gateway(t, options([k2]))).url(), keyOf.ada)
    t.ok(
      (await fresh.request('tools/call', echo)).json.result?.content,
      'whoever has read nothing before needs the new one alone'
    )
    t.same([...new Set(upstream.seen.map(({ headers }) => headers['x-api-key']))], ['the-secret-of-ada'])

    t.match(await rotate([k3, k1]), {
      code: 1,
      out: /^tenant acme: The vault is sealed with the key k2, which is not configured\.\n0 tenants .*, 1 failed\nLeave all keys/
    })
    const store = await createRedisStore({ url, clock: wallClock, log: pino({ level: 'silent' }) })
    t.teardown(() => store.close())
    const kept = (await store.get(vaultKeyKey('acme'))) ?? ''
    await store.set(vaultKeyKey('acme'), kept.slice(0, -4))
    t.match(await rotate([k3, k2]), { code: 1, out: /^tenant acme: The key k2 of the vault cannot open .* 1 failed/s })
    await store.set(vaultKeyKey('acme'), kept)
    t.match(await rotate([k3, k2]), { code: 0, out: /^1 tenant wrapped anew with the key k3/ })
  }
)

t.test('mistakes are answered by what to write instead', async (t) => {
  t.match(await gatehouse('vault', 'rotate'), { code: 2, err: /needs --config FILE/ })
  const file = join(t.testdir(), 'gatehouse.json')
  writeFileSync(file, JSON.stringify({ store: 'memory:', tenants: { acme: { auth: 'none', upstreams: {} } } }))
  t.match(await gatehouse('vault', 'rotate', '--config', file), { code: 2, err: /has no "vault"/ })
})
