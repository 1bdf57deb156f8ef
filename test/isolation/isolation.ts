// People of several tenants do whatever people do, and some of what attackers do, at two processes at once. Nothing that
// one of them gets, no server, log, metric, audit record or store key ever holds the canary of another tenant.

import { setTimeout as wait } from 'node:timers/promises'
import { legacyClient, open, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../kit/modern-listen.ts'
import { openEvents, type EventStream } from '../kit/events.ts'
import { isServerRequest, post, type Json } from '../kit/server-request.ts'
import { random, type Random } from '../fuzz/random.ts'
import type { House, Person, World } from './world.ts'

export interface IsolationReport {
  operations: number
  /** By kind: how often, and how often it was answered with a result. */
  readonly kinds: Record<string, { done: number; ok: number }>
  readonly leaks: string[]
  /** Exchanges without an answer, and why. */
  readonly failures: string[]
}

/** What one person knows that others could steal. */
interface Known {
  session?: LegacyClient
  stream?: EventStream
  listen?: ModernStream
  cursor?: unknown
  requestState?: unknown
  taskId?: unknown
  eventId?: string | undefined
}

interface Actor {
  readonly house: House
  readonly person: Person
  readonly chance: Random
  readonly known: Known
}

/** @returns those whose secrets stand in a text, other than the tenant's own */
export function foreignSecrets(world: World, own: House | undefined, text: string): string[] {
  return world.houses
    .filter((house) => house !== own && house.secrets.some((secret) => text.includes(secret)))
    .map(({ id }) => id)
}

const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** Operations between two looks at what was said meanwhile. */
const lookEvery = 200
/** Characters of a stream, which is then opened anew: a long run would not fit into memory. */
const maxStreamChars = 100_000

/**
 * @param seed of what everybody does; how they overlap is chance
 * @param options `seconds` after which it ends, whatever it has done; `look` is called from time to time
 */
export async function isolation(
  world: World,
  { operations, seconds, seed, look }: { operations: number; seconds: number; seed: number; look: () => void }
): Promise<IsolationReport> {
  const until = performance.now() + seconds * 1_000
  const report: IsolationReport = { operations: 0, kinds: {}, leaks: [], failures: [] }
  const actors = world.houses.flatMap((house, at) =>
    house.people.map((person, n): Actor => ({ house, person, chance: random(seed, at * 1_000 + n), known: {} }))
  )

  function judge({ house }: Actor, kind: string, text: string): void {
    for (const id of foreignSecrets(world, house, text))
      report.leaks.push(`${kind}: ${house.id} got ${id}: ${text.slice(0, 2_000)}`)
  }

  async function live(actor: Actor): Promise<void> {
    const others = actors.filter(({ house }) => house !== actor.house)
    while (report.operations < operations && report.leaks.length === 0 && performance.now() < until) {
      if (++report.operations % lookEvery === 0) look()
      const [kind, act] = actor.chance.pick(actor.known.session === undefined ? openings : acts)
      const count = (report.kinds[kind] ??= { done: 0, ok: 0 })
      count.done++
      const texts = await act({ ...actor, world, victim: actor.chance.pick(others) }).catch((error: unknown) => {
        report.failures.push(`${kind}: ${String(error)}`.slice(0, 300))
        return []
      })
      for (const { status, headers, text } of texts) {
        judge(actor, kind, JSON.stringify(headers) + text)
        if (status < 300 && !text.includes('"error"')) count.ok++
      }
    }
    const { session, stream, listen } = actor.known
    for (const each of [stream, listen])
      if (each !== undefined) judge(actor, 'stream', typeof each.text === 'string' ? each.text : each.text())
    stream?.cut()
    listen?.close()
    await session?.end()
  }
  await Promise.all(actors.map(live))
  return report
}

interface Acting extends Actor {
  readonly world: World
  /** Somebody of another tenant. */
  readonly victim: Actor
}
type Act = (acting: Acting) => Promise<ReadonlyArray<Pick<Answer, 'status' | 'headers' | 'text'>>>

const urlOf = ({ world, house, chance }: Acting): string => world.url(chance.below(world.rig.nodes.length), house)
const argumentsOf = ({ house, person, chance }: Acting): Json => ({
  canary: house.canary,
  of: person.name,
  n: chance.below(100)
})

async function call(acting: Acting, name: string, args: Json): Promise<Answer[]> {
  const { house, person, chance, known } = acting
  const params = { name, arguments: args, _meta: { progressToken: `${house.canary} ${person.name}` } }
  if (known.session !== undefined && chance.chance(0.5))
    return [
      await post(urlOf(acting), known.session, {
        id: `${house.canary}-${chance.below(1e9)}`,
        method: 'tools/call',
        params
      })
    ]
  return [await modern(acting, 'tools/call', params)]
}

const modern = (acting: Acting, method: string, params: Json): Promise<Answer> =>
  modernRequest(urlOf(acting), method, params, {
    token: acting.person.key,
    capabilities,
    id: `${acting.house.canary}-modern`,
    meta: { ...(params['_meta'] as object | undefined), 'io.modelcontextprotocol/logLevel': 'debug' }
  })

async function ask(acting: Acting, method: string, params: Json): Promise<Answer[]> {
  const { known, chance } = acting
  if (known.session === undefined || chance.chance(0.5)) return [await modern(acting, method, params)]
  return [await post(urlOf(acting), known.session, { id: `r-${chance.below(1e9)}`, method, params })]
}

const openSession: Act = async (acting) => {
  const { known, person, chance } = acting
  known.stream?.cut()
  delete known.stream
  known.session = await legacyClient(urlOf(acting), person.key, chance.pick(['2025-06-18', '2025-11-25']), capabilities)
  return [known.session.initialized]
}

const listKinds = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

const ordinary: ReadonlyArray<readonly [kind: string, act: Act]> = [
  [
    'list',
    async (acting) => {
      const { known, chance } = acting
      const method = chance.pick(listKinds)
      const answers = await ask(acting, method, {})
      known.cursor = answers[0]?.json?.result?.nextCursor ?? known.cursor
      return answers
    }
  ],
  ['discover', async (acting) => [await modern(acting, 'server/discover', {})]],
  ['echo', (acting) => call(acting, `${acting.chance.pick(['old', 'modern', 'local'])}__echo`, argumentsOf(acting))],
  [
    'error',
    (acting) =>
      call(acting, `${acting.chance.pick(['old', 'modern', 'local'])}__${acting.chance.pick(['rpcerror', 'fail'])}`, {
        message: `error of ${acting.house.canary}`,
        data: argumentsOf(acting)
      })
  ],
  [
    'notifications',
    (acting) =>
      call(acting, 'old__steps', {
        steps: [{ progress: 1 }, { log: `log of ${acting.house.canary}` }, { progress: 2 }],
        push: acting.chance.chance(0.3)
      })
  ],
  [
    'prompt',
    (acting) =>
      ask(acting, 'prompts/get', {
        name: `${acting.chance.pick(['old', 'modern', 'local'])}__greet`,
        arguments: { who: acting.house.canary }
      })
  ],
  [
    'resource',
    (acting) => {
      const { house, chance } = acting
      const own = `test://${house.canary}/${chance.pick(['one', 'two', 'item/7'])}`
      return ask(acting, 'resources/read', { uri: `gatehouse://${chance.pick(['old', 'modern', 'local'])}/${own}` })
    }
  ],
  [
    'completion',
    (acting) =>
      ask(acting, 'completion/complete', {
        ref: { type: 'ref/prompt', name: 'old__greet' },
        argument: { name: 'who', value: acting.house.canary }
      })
  ],
  [
    'subscription',
    async (acting) => {
      const { known, house } = acting
      const uri = `gatehouse://old/test://${house.canary}/one`
      if (known.session === undefined) return []
      const { session } = known
      const subscribed = await post(urlOf(acting), session, { id: 's', method: 'resources/subscribe', params: { uri } })
      const touched = await call(acting, 'old__touch', { uri: `test://${house.canary}/one` })
      return [subscribed, ...touched]
    }
  ],
  [
    'input of a session',
    async (acting) => {
      const { known, house } = acting
      if (known.session === undefined) return []
      const { session } = known
      const params = {
        name: 'old__steps',
        arguments: { steps: [{ ask: [{ method: 'elicitation/create', params: elicited(house) }] }] }
      }
      const stream = await openEvents(urlOf(acting), {
        method: 'POST',
        headers: session.headers,
        body: JSON.stringify({ jsonrpc: '2.0', id: `in-${acting.chance.below(1e9)}`, method: 'tools/call', params })
      })
      if (stream.type !== 'text/event-stream; charset=utf-8') return [await textOf(stream)]
      const asked = (await stream.next(
        'a question or an answer',
        (message: Json) => isServerRequest(message) || 'error' in message
      )) as Json
      if (isServerRequest(asked))
        await post(urlOf(acting), session, {
          id: asked['id'],
          result: { action: 'accept', content: { name: house.canary } }
        })
      return [await textOf(stream)]
    }
  ],
  [
    'input of 2026-07-28',
    async (acting) => {
      const { known, house } = acting
      const params = { name: 'modern__ask', arguments: argumentsOf(acting) }
      const first = await modern(acting, 'tools/call', params)
      const { requestState, inputRequests } = first.json?.result ?? {}
      if (requestState === undefined) return [first]
      known.requestState = requestState
      const inputResponses = Object.fromEntries(
        Object.keys(inputRequests ?? {}).map((key) => [key, { action: 'accept', content: { name: house.canary } }])
      )
      return [first, await modern(acting, 'tools/call', { ...params, requestState, inputResponses })]
    }
  ],
  [
    'task',
    async (acting) => {
      const { known } = acting
      const made = await modern(acting, 'tools/call', { name: 'modern__task', arguments: argumentsOf(acting) })
      const taskId = made.json?.result?.taskId as unknown
      if (typeof taskId !== 'string') return [made]
      known.taskId = taskId
      return [made, await modern(acting, 'tasks/get', { taskId })]
    }
  ],
  [
    'streams',
    async (acting) => {
      const { known, person, house } = acting
      if (known.session !== undefined && known.stream === undefined) {
        known.stream = await openEvents(urlOf(acting), {
          method: 'GET',
          headers: { ...known.session.headers, accept: 'text/event-stream' }
        })
        known.eventId = known.stream.lastId() ?? known.eventId
      }
      if (known.listen !== undefined && known.listen.text.length > maxStreamChars) {
        const text = known.listen.text
        known.listen.close()
        delete known.listen
        return [{ status: 200, headers: {}, text }]
      }
      known.listen ??= await modernListen(
        urlOf(acting),
        { toolsListChanged: true, resourceSubscriptions: [`gatehouse://modern/test://${house.canary}/one`] },
        { token: person.key }
      )
      return []
    }
  ],
  ['session', openSession],
  [
    'end',
    async (acting) => {
      const { known } = acting
      const ended = await known.session?.end()
      delete known.session
      return ended === undefined ? [] : [ended]
    }
  ]
]

const elicited = ({ canary }: House): Json => ({
  message: `question of ${canary}`,
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
})

async function textOf(stream: EventStream): Promise<Pick<Answer, 'status' | 'headers' | 'text'>> {
  await stream.ended
  return { status: stream.status, headers: {}, text: stream.text() }
}

/** What somebody else has and nobody should be able to use: never a text that holds a canary by itself. */
const attacks: ReadonlyArray<readonly [kind: string, act: Act]> = [
  [
    'foreign session',
    async (acting) => {
      const { victim, person } = acting
      const { session } = victim.known
      if (session === undefined) return []
      const headers = { ...session.headers, authorization: `Bearer ${person.key}` }
      const at = acting.chance.pick([
        urlOf(acting),
        acting.world.url(acting.chance.below(acting.world.rig.nodes.length), victim.house)
      ])
      const message = { id: 1, method: acting.chance.pick(['tools/list', 'ping']) }
      return [await post(at, { headers }, message), await send(at, { method: 'DELETE', headers })]
    }
  ],
  [
    'foreign endpoint',
    async (acting) => [
      await modernRequest(
        acting.world.url(acting.chance.below(acting.world.rig.nodes.length), acting.victim.house),
        'tools/list',
        {},
        { token: acting.person.key }
      )
    ]
  ],
  [
    'foreign cursor',
    (acting) => ask(acting, acting.chance.pick(listKinds), { cursor: acting.victim.known.cursor ?? 'none' })
  ],
  [
    'foreign request state',
    async (acting) => [
      await modern(acting, 'tools/call', {
        name: 'modern__ask',
        arguments: argumentsOf(acting),
        requestState: acting.victim.known.requestState ?? 'none',
        inputResponses: {}
      })
    ]
  ],
  [
    'foreign task',
    async (acting) => [await modern(acting, 'tasks/get', { taskId: acting.victim.known.taskId ?? 'none' })]
  ],
  [
    'foreign event',
    async (acting) => {
      const { known, victim, chance } = acting
      const { session } = known
      const { eventId, stream } = victim.known
      if (session === undefined) return []
      const headers = {
        ...session.headers,
        accept: 'text/event-stream',
        'last-event-id': stream?.lastId() ?? eventId ?? 'none'
      }
      const stop = new AbortController()
      const response = await open(urlOf(acting), { headers, signal: stop.signal })
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('error', () => {})
      await wait(chance.below(5))
      stop.abort()
      // It took the stream of this session over.
      known.stream?.cut()
      delete known.stream
      return [{ status: response.statusCode ?? 0, headers: response.headers, text }]
    }
  ],
  [
    'foreign answer',
    async (acting) => {
      const { known } = acting
      if (known.session === undefined) return []
      return [
        await post(urlOf(acting), known.session, {
          id: acting.chance.below(20),
          result: { action: 'accept', content: {} }
        })
      ]
    }
  ]
]

const openings: typeof ordinary = [['session', openSession]]
const acts: typeof ordinary = [...ordinary, ...attacks]
