// A store that answers but takes no writes: its disk or memory is full, or it is a replica. Sessions cannot be opened,
// and readiness says so, so that a load balancer sends new clients elsewhere.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { jsonHeaders, send, type Answer } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { initializeBody } from '../kit/acme-gateway.ts'
import { serve } from '../kit/process.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { gatehouse } from './kit/process.ts'

const ready = (url: string): Promise<Answer> => send(`${url}/health/ready`, { method: 'GET' })
const open = (url: string): Promise<Answer> =>
  send(`${url}/t/acme/mcp`, {
    headers: { ...jsonHeaders, authorization: `Bearer ${key}` },
    body: initializeBody()
  })
/** Nothing is called. */
const upstreams = { up: { url: 'http://127.0.0.1:9/mcp' } }
const refused = { status: 503, json: { status: 'not ready', reason: /^the store cannot be written/ } }

t.test('no file of the gateway may grow any more', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'gatehouse.json')
  const config = configOf({
    upstreams,
    store: 'file:./store.db',
    limits: { sessionsPerPrincipal: 10_000 }
  })
  await writeFile(file, JSON.stringify(config))
  const running = gatehouse(t, ['serve', '--config', file, '--port', '0'], {
    cwd: folder,
    node: '/bin/sh',
    // In blocks of 512 or 1,024 bytes, as the shell has it: what the write-ahead log of a few sessions takes.
    nodeArgs: ['-c', 'ulimit -f 800; exec "$0" "$@"', process.execPath]
  })
  const url = await running.ready
  t.match(await ready(url), { status: 200, json: { status: 'ready' } }, 'while there is room')
  t.equal((await open(url)).status, 200)

  await until('sessions are refused', async () => (await open(url)).status === 503)
  await until('it is not ready', async () => (await ready(url)).status === 503)
  t.match(await ready(url), refused)
  t.equal((await send(`${url}/health/live`, { method: 'GET' })).status, 200, 'restarting it would not help')
  const line = await running.logged('the reason', ({ msg }) => String(msg).startsWith('the store cannot be written'))
  t.match(line, { level: 50, err: { code: 'unavailable' } })
})

t.test('Redis is full, or became a replica', async (t) => {
  const server = await redis(t)
  const admin = new Redis(server.url)
  t.teardown(() => admin.disconnect())
  const { url } = await serve(t, configOf({ upstreams, store: server.url }))
  const isReady = async (): Promise<boolean> => (await ready(url)).status === 200
  await until('it is ready', isReady)
  t.equal((await open(url)).status, 200)
  const states = {
    full: [() => admin.config('SET', 'maxmemory', '1'), () => admin.config('SET', 'maxmemory', '0')],
    'a replica': [() => admin.replicaof('127.0.0.1', '1'), () => admin.replicaof('NO', 'ONE')]
  } as const
  for (const [what, [begin, end]] of Object.entries(states)) {
    await begin()
    await until('it is not ready', async () => !(await isReady()))
    // A connection to a replica is given up, since its name may lead to another primary by now.
    const reasons = what === 'full' ? refused : { status: 503, json: { reason: /cannot be (written|reached)/ } }
    t.match(await ready(url), reasons, what)
    t.equal((await open(url)).status, 503, what)
    await end()
    await until('it is ready again', isReady)
    t.equal((await open(url)).status, 200, 'and sessions are opened')
  }
})
