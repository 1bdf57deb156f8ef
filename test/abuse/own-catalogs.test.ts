// Attack: a server of few tools lists something else for each session, at an endpoint where others list thousands. Each
// session has a catalog of all of it to itself then, which has to count as memory and to be built in one short turn.

import { queryObjects, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const mebibyte = 1024 * 1024
/** As many as are read of one list. */
const many = 5_000
const toolOf = (name: string): object => ({ name, inputSchema: { type: 'object' } })

const httpAt = ({ url }: { readonly url: string }): object => ({ type: 'http', url })

async function start(t: Test, memory = createMemoryAccount()) {
  const odd = await startUpstream({ tools: ['grow', 'echo'].map(toolOf), ownLists: true })
  const wide = await startUpstream({ tools: Array.from({ length: many }, (_, at) => toolOf(`tool-${at}`)) })
  t.teardown(() => Promise.all([odd.close(), wide.close()]))
  const wides = ['w0', 'w1', 'w2', 'w3', 'w4']
  const made = await gateway(t, {
    upstreams: Object.fromEntries([['odd', httpAt(odd)], ...wides.map((name) => [name, httpAt(wide)])]),
    endpoints: { default: { upstreams: ['odd', 'w0'] }, all: { upstreams: ['odd', ...wides] } },
    overrides: { memory }
  })
  await made.gateway.warm()
  const session = (endpoint?: string): Promise<LegacyClient> => legacyClient(made.url(endpoint), key)
  /** The server has its own names for them in what it refuses. */
  const isKnown = async (client: LegacyClient, name: string): Promise<boolean> =>
    !(await client.request('tools/call', { name, arguments: {} })).text.includes(`Unknown tool: ${name}`)
  /** @returns a session with a tool that no other one has, and so with a catalog of its own */
  async function grown(): Promise<LegacyClient> {
    const client = await session()
    await client.request('tools/call', { name: 'odd__grow', arguments: { name: 'mine' } })
    await until('its tool is there', () => isKnown(client, 'odd__mine'))
    return client
  }
  return { log: made.log, grown, session, isKnown }
}

t.test('catalogs of sessions are counted, and given back', async (t) => {
  const memory = createMemoryAccount()
  const { grown, session, isKnown } = await start(t, memory)
  const other = await session()
  await until('all are read', () => isKnown(other, `w0__tool-${many - 1}`))
  const before = memory.held
  const sessions = [await grown(), await grown(), await grown()]
  const each = (memory.held - before) / sessions.length
  t.ok(each > many * 256, `${each} bytes of each`)
  t.notOk(await isKnown(other, 'odd__mine'), 'whoever has no list of its own shares a catalog')
  for (const client of sessions) await client.end()
  await until('they are given back', () => {
    gc()
    return memory.held < before + mebibyte
  })
})

t.test('where there is no memory for them, they are made anew for each call', async (t) => {
  const memory = createMemoryAccount(40 * mebibyte)
  const { grown, isKnown } = await start(t, memory)
  const first = await grown()
  const before = memory.held
  const sessions: LegacyClient[] = []
  for (let at = 0; at < 6; at++) sessions.push(await grown())
  t.ok(memory.held - before < 10 * mebibyte, `${memory.held - before} bytes`)
  for (const client of [first, ...sessions]) {
    t.ok(await isKnown(client, 'odd__mine'))
    t.ok(await isKnown(client, `w0__tool-${many - 1}`))
  }
})

t.test('lists that were replaced are kept by no endpoint that nobody asks any more', async (t) => {
  const some = 2_000
  const wide = await startUpstream({
    tools: ['grow', ...Array.from({ length: some }, (_, at) => `t${at}`)].map(toolOf)
  })
  t.teardown(() => wide.close())
  const names = Array.from({ length: 7 }, (_, at) => `e${at}`)
  const made = await gateway(t, {
    upstreams: { wide: { ...httpAt(wide), isolation: 'shared' } },
    endpoints: Object.fromEntries(names.map((name) => [name, { upstreams: ['wide'], prefix: 'w' }]))
  })
  const clients: LegacyClient[] = []
  for (const name of names) clients.push(await legacyClient(made.url(name), key))
  const isKnown = async (client: LegacyClient, name: string): Promise<boolean> =>
    !(await client.request('tools/call', { name, arguments: {} })).text.includes(`Unknown tool: ${name}`)
  const alive = (): number => queryObjects(Object, { format: 'count' })
  const [first, ...others] = clients
  if (first === undefined) return
  await until('the list is read', () => isKnown(first, 'w__t1'))
  const before = alive()
  for (const [at, client] of others.entries()) {
    await client.request('tools/call', { name: 'w__grow', arguments: { name: `grown-${at}` } })
    await until('the new list is read', () => isKnown(client, `w__grown-${at}`))
  }
  const grown = alive() - before
  t.ok(grown < 3 * 2 * some, `${grown} objects more, of ${others.length} lists`)
})

t.test('of lists that are too long together, the rest of the longest is left out', async (t) => {
  const { session, isKnown, log } = await start(t)
  const [some, all] = await Promise.all([session(), session('all')])
  await until('all are read', () => isKnown(all, 'w4__tool-0'))
  t.ok(await isKnown(some, `w0__tool-${many - 1}`), 'one long list is whole')
  for (const name of ['odd__echo', 'w0__tool-3900', 'w4__tool-3900']) t.ok(await isKnown(all, name), name)
  for (const name of ['w0', 'w4']) t.notOk(await isKnown(all, `${name}__tool-4000`), `the rest of ${name}`)
  const lines = log.filter(({ msg }) => /list more than it looks at/.test(String(msg)))
  t.match(lines, [{ endpoint: 'all', max: 20_000, ofEachUpstream: Number }])
})
