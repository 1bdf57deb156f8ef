// Two hundred sessions at once, all with the same JSON-RPC ids and progress tokens: what is one caller's reaches that
// caller only.

import t, { type Test } from 'tap'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { canaryServer, stdioCanaryServer, type CanaryServer } from '../kit/canary-server.ts'
import { serve } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const sessions = 200
/** These also call a process of their own. */
const withProcess = 6
const steps = 2
const tenants = ['acme', 'globex']
const people = ['ada', 'bob', 'cyd', 'dan', 'eve']
const keyOf = (tenant: string, person: string): string => `gh_test_key_${tenant}_${person}_0123456789`
const isolations = { web: 'session', mine: 'principal', pooled: 'shared' } as const

interface Caller {
  readonly client: LegacyClient
  /** Tenant, person and number: the beginning of all its canaries. */
  readonly name: string
}

interface SetUp {
  readonly url: string
  readonly servers: Readonly<Record<keyof typeof isolations, CanaryServer>>
}

async function setUp(t: Test): Promise<SetUp> {
  const servers = { web: await canaryServer(t), mine: await canaryServer(t), pooled: await canaryServer(t) }
  const upstreams = {
    ...Object.fromEntries(
      Object.entries(isolations).map(([name, isolation]) => [
        name,
        // Hundreds connect at once, also on a machine that does other things.
        { url: servers[name as keyof typeof servers].url, isolation, connectMs: 120_000 }
      ])
    ),
    local: stdioCanaryServer
  }
  const tenantOf = (tenant: string) => ({
    auth: { keys: people.map((name) => ({ name, key: keyOf(tenant, name) })) },
    upstreams
  })
  const { url } = await serve(
    t,
    configOf({
      upstreams,
      auth: tenantOf('acme').auth,
      tenants: { globex: tenantOf('globex') },
      // 660 calls at once, none of which may be refused because the machine is slow.
      limits: { coldStartMs: 30_000, queueMs: 300_000 },
      top: { logLevel: 'warn' }
    })
  )
  return { url, servers }
}

async function callers(url: string): Promise<Caller[]> {
  return await Promise.all(
    Array.from({ length: sessions }, async (_, n) => {
      const tenant = tenants[n % 2] ?? ''
      const person = people[n % 5] ?? ''
      return {
        client: await legacyClient(`${url}/t/${tenant}/mcp`, keyOf(tenant, person)),
        name: `${tenant}.${person}.${n}`
      }
    })
  )
}

const canaryOf = (caller: Caller, upstream: string): string => `<${caller.name}.${upstream}>`
const canariesIn = (text: string): string[] => text.match(/<[a-z]+\.[a-z]+\.\d+\.[a-z]+>/g) ?? []
const ownerOf = (canary: string): string => canary.split('.').slice(0, 3).join('.').slice(1)

t.test('every answer and every notification reaches its own caller, and only that one', async (t) => {
  const { url, servers } = await setUp(t)
  const all = await callers(url)
  // Before the rush, in which a busy machine refuses to start them.
  for (const { client } of all.slice(0, withProcess))
    await until('its own process', async () => {
      const call = { name: 'local__mirror', arguments: { canary: 'first' } }
      return (await client.request('tools/call', call)).json.result !== undefined
    })
  const streams = await Promise.all(all.map(({ client }) => client.listen()))
  const started: string[] = []
  const finished: string[] = []

  await Promise.all(
    all.map(async (caller, n) => {
      const upstreams = [...Object.keys(isolations), ...(n < withProcess ? ['local'] : [])]
      await Promise.all(
        upstreams.map(async (upstream, at) => {
          const id = at + 1
          const canary = canaryOf(caller, upstream)
          started.push(canary)
          const answer = await caller.client.request(
            'tools/call',
            {
              name: `${upstream}__mirror`,
              arguments: { canary, steps, delayMs: Math.random() * 150 },
              _meta: { progressToken: id }
            },
            { id }
          )
          finished.push(canary)
          const final = answer.messages.at(-1)
          if (final?.id !== id || final.result?.content?.[0]?.text !== canary)
            t.fail("an answer that is not the caller's own", { canary, text: answer.text })
          const strangers = canariesIn(answer.text).filter((found) => found !== canary)
          if (strangers.length > 0) t.fail('canaries of others in an answer', { canary, strangers })
          const progress = answer.messages
            .filter(({ method }) => method === 'notifications/progress')
            .map(({ params }) => params)
          const wanted = Array.from({ length: steps }, (_, step) => ({
            progressToken: id,
            progress: step + 1,
            message: canary
          }))
          if (JSON.stringify(progress) !== JSON.stringify(wanted))
            t.fail("progress that is not the caller's own, whole and in order", { canary, progress })
          const logged = answer.messages
            .filter(({ method }) => method === 'notifications/message')
            .map(({ params }) => params.data)
          if (logged.length !== steps) t.fail("log messages that are not the caller's own", { canary, logged })
        })
      )
    })
  )

  t.equal(finished.length, sessions * 3 + withProcess, 'all calls were answered')
  t.notSame(finished, started, 'and in another order than they were sent in')
  t.same(
    streams.flatMap(({ messages }) => canariesIn(JSON.stringify(messages))),
    [],
    "nothing of a call is on any session's stream"
  )
  for (const stream of streams) stream.close()

  const owners = (upstream: CanaryServer): Array<Set<string>> =>
    [...upstream.bySession.values()].map((canaries) => new Set([...canaries].map(ownerOf)))
  t.ok(
    [...servers.web.executed.values()].every((times) => times === 1),
    'each call was executed once'
  )
  t.equal(owners(servers.web).length, sessions)
  t.ok(
    owners(servers.web).every((names) => names.size === 1),
    'isolation by session: no upstream session has calls of two sessions'
  )
  t.equal(owners(servers.mine).length, tenants.length * people.length)
  t.ok(
    owners(servers.mine).every((names) => new Set([...names].map((name) => name.replace(/\.\d+$/, ''))).size === 1),
    'isolation by principal: none has calls of two principals'
  )
  t.equal(owners(servers.pooled).length, tenants.length)
  t.ok(
    owners(servers.pooled).every((names) => new Set([...names].map((name) => name.split('.')[0])).size === 1),
    'shared: none has calls of two tenants'
  )
})

t.test('cancelling id 1 in one session leaves id 1 of all others alone', async (t) => {
  const { url, servers } = await setUp(t)
  const all = await callers(url)
  const upstreamOf = (n: number): keyof typeof isolations => (['web', 'mine', 'pooled'] as const)[n % 3] ?? 'web'
  const answers = all.map(async (caller, n) => {
    const canary = canaryOf(caller, upstreamOf(n))
    return {
      canary,
      answer: await caller.client.request(
        'tools/call',
        { name: `${upstreamOf(n)}__hold`, arguments: { canary } },
        { id: 1 }
      )
    }
  })
  const upstreams = Object.values(servers)
  const held = (): string[] => upstreams.flatMap((upstream) => upstream.held())
  await until('all calls at their upstreams', () => held().length === sessions)

  const victims = [0, 1, 2, 101].map((n) => ({ caller: all[n], canary: canaryOf(all[n] as Caller, upstreamOf(n)) }))
  for (const { caller } of victims)
    t.equal((await caller?.client.notify('notifications/cancelled', { requestId: 1 }))?.status, 202)
  await until(
    'the cancellations at their upstreams',
    () => upstreams.flatMap(({ cancelled }) => cancelled).length === victims.length
  )
  t.same(
    new Set(upstreams.flatMap(({ cancelled }) => cancelled)),
    new Set(victims.map(({ canary }) => canary)),
    'exactly the cancelled calls were cancelled, at their own upstreams'
  )
  t.equal(held().length, sessions - victims.length)

  for (const upstream of upstreams) upstream.release()
  let answered = 0
  for (const { canary, answer } of await Promise.all(answers)) {
    if (victims.some((victim) => victim.canary === canary)) {
      t.same(answer.messages, [], 'a cancelled request gets no answer (2025-11-25 basic/utilities/cancellation)')
    } else if (answer.json?.id === 1 && answer.json.result?.content[0].text === canary) answered++
    else t.fail('a call that nobody cancelled', { canary, text: answer.text })
  }
  t.equal(answered, sessions - victims.length, 'all others were answered')
})
