// Clients seldom say goodbye. Hundreds of sessions are dropped without DELETE, some in the middle of a call or of
// their stream: once they have expired, the gateway is as it was before them.

import t from 'tap'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { legacyClient } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { canaryServer } from '../kit/canary-server.ts'
import { descriptors, marked, serve, type Started } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const sessions = 360
const atOnce = 20
const sessionIdleMs = 8_000
/** After these, what is made once is there, compiled code above all. */
const warm = 120
/**
 * The heap is measured after each so many further sessions. What is kept of a session shows every time, what is made
 * once does not.
 */
const wave = 80
/** What is within: the copy of its record in the bounded cache. */
const bytesPerSession = 4_000

const smallServer = new URL('../kit/small-server.sh', import.meta.url).pathname

// On USR2 the process collects its garbage and tells what is left. Code is neither optimised nor thrown away, for that
// comes and goes by megabytes.
const measured = {
  NODE_OPTIONS: `--expose-gc --import=data:text/javascript,${encodeURIComponent(
    'import v8 from "node:v8"; for (const flag of ["opt", "maglev", "sparkplug", "flush-bytecode"]) v8.setFlagsFromString("--no-" + flag); process.on("SIGUSR2", () => { gc(); gc(); console.error(JSON.stringify({ heap: process.memoryUsage().heapUsed })) })'
  )}`
}

/** The least of several collections, in bytes: the engine lets go of unused code only after some of them. */
async function heap({ signal, log }: Started): Promise<number> {
  const sizes = (): number[] => log().flatMap((line) => (typeof line['heap'] === 'number' ? [line['heap']] : []))
  const before = sizes().length
  for (let n = 1; n <= 8; n++) {
    signal('SIGUSR2')
    await until('the size of the heap', () => sizes().length === before + n)
  }
  return Math.min(...sizes().slice(before))
}

/**
 * The rows of the store, read from a copy: the gateway keeps the file itself locked, and may write while it is copied.
 */
const rows = (folder: string): Promise<string[]> =>
  until('a copy that is whole', () => copiedRows(folder).catch(() => undefined))

async function copiedRows(folder: string): Promise<string[]> {
  const copy = await mkdtemp(join(folder, 'copy-'))
  try {
    for (const name of ['store.db', 'store.db-wal']) await copyFile(join(folder, name), join(copy, name))
    using database = new DatabaseSync(join(copy, 'store.db'))
    return database
      .prepare('SELECT key FROM entry')
      .all()
      .map((row) => String(row['key']))
  } finally {
    await rm(copy, { recursive: true })
  }
}

// It waits for sessions to expire, four times.
t.setTimeout(400_000)

t.test('sessions that are dropped without a word leave nothing behind', async (t) => {
  const web = await canaryServer(t)
  const mark = `GATEHOUSE_TEST_${randomUUID()}`
  const started = await serve(
    t,
    configOf({
      upstreams: {
        web: { url: web.url, idleMs: 1_000, connectMs: 120_000 },
        local: { command: smallServer, env: { MARK: mark }, idleMs: 1_000 }
      },
      store: 'file:store.db',
      // All of them are one caller's.
      limits: { sessionIdleMs, coldStartMs: 30_000, processes: 400, processesPerTenant: 400 },
      top: { logLevel: 'warn' }
    }),
    { env: measured }
  )
  const url = `${started.url}/t/acme/mcp`
  const processes = new Set<string>()
  let busy = 0

  async function visit(n: number): Promise<void> {
    const client = await legacyClient(url, key)
    const call = (name: string, args: object, signal?: AbortSignal) =>
      client.request(
        'tools/call',
        { name, arguments: args, _meta: { progressToken: 1 } },
        signal === undefined ? {} : { signal }
      )
    if (n % 4 === 0) {
      const stream = await client.listen()
      t.teardown(() => stream.close())
      queueMicrotask(() => stream.close())
    }
    const [local, remote] = await Promise.all([
      // So many start at once that a busy machine refuses some for a moment.
      until('its own process', async () => (await call('local__pid', {})).json.result),
      call('web__mirror', { canary: `of ${n}`, steps: 3 })
    ])
    processes.add(local.content[0].text)
    // While it has its process: a busy machine comes back after that has ended as idle.
    busy = Math.max(busy, await descriptors(started.pid))
    if (remote.json.result.content[0].text !== `of ${n}`) t.fail('a wrong answer', remote.json)
    if (n % 5 === 0) {
      const stop = new AbortController()
      // Longer than any machine takes to cut it.
      const cut = call('web__mirror', { canary: `cut ${n}`, steps: 3, delayMs: 30_000 }, stop.signal).then(
        () => t.fail('it was not cut'),
        () => {}
      )
      await until('the call at its upstream', () => web.executed.has(`cut ${n}`))
      stop.abort()
      await cut
    }
  }

  async function visits(from: number, to: number): Promise<void> {
    for (let n = from; n < to; n += atOnce)
      await Promise.all(Array.from({ length: Math.min(atOnce, to - n) }, (_, at) => visit(n + at)))
  }

  /** All that sessions and listings hold has been let go. */
  async function quiet(): Promise<void> {
    const now = performance.now()
    // Expired sessions are looked for once in every idle time.
    await until('the end of the sessions', () => performance.now() > now + 2 * sessionIdleMs + 500)
    await until('no child process', async () => (await marked(mark)).length === 0)
    // Told in a second, or not at all: on a busy machine some are not.
    await until('most sessions at the upstream ended', () => web.sessions.size < web.bySession.size / 2)
    await until('no stream to the upstream', () => web.streams() === 0)
  }

  const first = visits(0, warm)
  await until('child processes', async () => (await marked(mark)).length > 5)
  await first
  t.ok(web.bySession.size > warm / 2, 'sessions were at the upstream')
  await quiet()
  const opened = await descriptors(started.pid)

  const sizes = [await heap(started)]
  let inUse = 0
  for (let n = warm; n < sessions; n += wave) {
    await visits(n, n + wave)
    // On a slow machine some of them have ended before they are counted.
    inUse = Math.max(inUse, (await heap(started)) - (sizes.at(-1) ?? 0))
    await quiet()
    sizes.push(await heap(started))
  }
  t.equal(processes.size, sessions, 'every session had a process of its own')
  t.ok(busy > opened + atOnce, 'descriptors were in use')
  await until('no descriptor more than before', async () => (await descriptors(started.pid)) <= opened)
  t.pass('no descriptor is left')
  const growth = sizes.slice(1).map((size, at) => Math.round((size - (sizes[at] ?? 0)) / wave))
  t.comment(
    `heap: ${sizes.map((size) => Math.round(size / 1024)).join(', ')} KiB; ${growth.join(', ')} bytes more per session; ${Math.round(inUse / 1024)} KiB more while they were in use`
  )
  t.ok(inUse > atOnce * bytesPerSession, 'sessions in use are seen in the heap')
  t.ok(
    (growth.toSorted((a, b) => a - b)[Math.floor(growth.length / 2)] ?? Infinity) < bytesPerSession,
    'a session that has ended is not'
  )
  await until(
    'no row of a session in the store',
    async () => !(await rows(started.folder)).some((name) => name.startsWith('session:'))
  )
  t.ok(
    (await rows(started.folder)).some((name) => name.startsWith('listing:')),
    'other rows are still there'
  )
  t.same(await started.stop(), { code: 0, signal: null })
})
