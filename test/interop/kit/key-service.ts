// AWS KMS as moto speaks it, a server of its own: the keys of tenants are wrapped there, by the SDK of AWS.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms'
import pino from 'pino'
import { runVaultRotate } from '../../../src/cli/store/vault.ts'
import { vaultKeyKey } from '../../../src/store/keys.ts'
import { createRedisStore } from '../../../src/store/redis.ts'
import { tenantId } from '../../../src/protocol/messages.ts'
import { steadyClock, wallClock } from '../../../src/time/clock.ts'
import { createVaultKeys } from '../../../src/vault/wrapping/vault-keys.ts'
import { keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { signedIn, submit } from '../../kit/connect-page.ts'
import { configOf, gateway, type TestGateway } from '../../kit/gateway.ts'
import { redis } from '../../kit/redis.ts'
import { until, type Teardown } from '../../kit/until.ts'
import { startUpstream } from '../../kit/upstream.ts'
import { within, type Outcome } from './foreign.ts'

const region = 'eu-central-1'
const secret = 'the-secret-of-ada'
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

/** @returns where it listens, and what ends it */
async function startMoto(t: Teardown, python: string) {
  const child = spawn(python, ['-m', 'moto.server', '-H', '127.0.0.1', '-p', '0'], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const stop = async (): Promise<void> => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  t.teardown(stop)
  const address = (): string | undefined => /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(output)?.[1]
  await until('moto listens', address)
  return { endpoint: address() ?? '', stop }
}

type Holds = (step: string, isSo: boolean) => void

/** Each step is a promise about keys of the vault in AWS KMS; the first that does not hold ends them. */
export function meetKeyService(peer: string, python: string): Promise<Outcome[]> {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
  return within(async (t) => {
    const outcomes: Outcome[] = []
    const holds: Holds = (step, isSo) => {
      outcomes.push({ peer, step, failure: isSo ? undefined : 'it does not' })
    }
    await run(t, python, holds).catch((error: unknown) => {
      outcomes.push({ peer, step: 'runs to its end', failure: String(error) })
    })
    return outcomes
  })
}

async function run(t: Teardown, python: string, holds: Holds): Promise<void> {
  const { endpoint, stop } = await startMoto(t, python)
  const service = new KMSClient({ region, endpoint })
  t.teardown(() => service.destroy())
  const make = async (): Promise<string> =>
    (await service.send(new CreateKeyCommand({ Description: 'gatehouse' }))).KeyMetadata?.KeyId ?? ''
  const [keyId, otherId] = [await make(), await make()]
  const inService = (id: string, name: string) => ({ id, awsKms: { keyId: name, region, endpoint } })
  const own = { id: 'own', key: randomBytes(32).toString('base64') }
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
  const call = async (made: TestGateway): Promise<string> => {
    const client = await legacyClient(made.url(), keyOf.ada)
    return (await client.request('tools/call', echo)).text
  }
  /** Of a gateway that has read nothing before. */
  const page = async (keys: unknown[]): Promise<string> => {
    const made = await gateway(t, options(keys))
    const { tab, page: opened } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
    return opened.html + (await tab.go(`${made.publicUrl}/t/acme/connections`, 'none')).html
  }
  const file = join(await mkdtemp(join(tmpdir(), 'gatehouse-')), 'gatehouse.json')
  t.teardown(() => rm(dirname(file), { recursive: true, force: true }))
  const rotate = async (keys: unknown[]): Promise<string> => {
    await writeFile(file, JSON.stringify(configOf(options(keys))))
    let said = ''
    const stdout = { write: (text: string) => (said += text) }
    await runVaultRotate({ config: file }, { env: process.env, stdout })
    return said
  }

  const kms = inService('kms', keyId)
  const first = await gateway(t, options([kms]))
  const { tab, page: opened } = await signedIn(`${first.publicUrl}/t/acme/connections`, keyOf.ada)
  await submit(tab, opened, 'secret', { secret })
  holds('what a person gives is used', (await call(first)).includes('hello'))
  holds(
    'it reaches the upstream',
    upstream.seen.some(({ headers }) => headers['x-api-key'] === secret)
  )
  const store = await createRedisStore({ url, clock: wallClock, log: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  const wrapped = (await store.get(vaultKeyKey('acme'))) ?? ''
  holds('the store says which key it was', Buffer.from(wrapped.split('.')[0] ?? '', 'base64url').includes('"kms"'))
  holds('another process opens it', (await call(await gateway(t, options([kms])))).includes('hello'))

  await store.set(vaultKeyKey('other'), wrapped)
  const ofOther = createVaultKeys({ ...rest, store, snapshot: () => ({ vault: { keys: [kms] } }) })
  const opens = (tenant: string) =>
    ofOther.of(tenantId(tenant)).then(
      () => true,
      () => false
    )
  holds('the key of a tenant is of no use at the place of another', !(await opens('other')) && (await opens('acme')))
  holds('another key of the service does not open it', /cannot open/.test(await page([inService('kms', otherId)])))

  holds('vault rotate goes from a service to a key of the file', /^1 tenant .* key own/.test(await rotate([own, kms])))
  holds('which is enough then', />connected</.test(await page([own])))
  holds('and back', /^1 tenant .* key kms/.test(await rotate([kms, own])))
  holds('where that is enough', />connected</.test(await page([kms])))
  const byOther = inService('next', otherId)
  holds('and from one key of a service to another', /^1 tenant .* key next/.test(await rotate([byOther, kms])))
  holds('of which the first is needed no more', />connected</.test(await page([byOther])))

  const running = await gateway(t, options([byOther]))
  holds('a process that has read the key', (await call(running)).includes('hello'))
  await stop()
  holds('goes on while the service is away', (await call(running)).includes('hello'))
  holds(
    'one that has not says that it cannot open the key now',
    /cannot open the key of this tenant for now/.test(await page([byOther]))
  )
}

const rest = {
  epochs: { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true },
  clock: steadyClock,
  log: pino({ level: 'silent' })
}
