// What people of a tenant do, in every way in which they reach the gateway, and what attackers try with what they know of
// people of another tenant.

import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { jsonHeaders, legacyClient, open, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { openEvents, type EventStream } from '../kit/events.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage, type ModernOptions } from '../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../kit/modern-listen.ts'
import { isServerRequest, type Json } from '../kit/server-request.ts'
import type { Heard } from './wire.ts'
import type { House, Member, Person, World } from './world.ts'

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

export interface Actor {
  readonly house: House
  readonly person: Person
  readonly chance: Random
  readonly known: Known
}

const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** Characters of a stream, which is then opened anew: a long run would not fit into memory. */
const maxStreamChars = 100_000

export interface Acting extends Actor {
  readonly world: World
  /** Somebody of another tenant. */
  readonly victim: Actor
}
type Told = Pick<Heard, 'status' | 'head' | 'text'>
const told = ({ status, headers, text }: Answer): Told => ({ status, head: JSON.stringify(headers), text })

type Act = (acting: Acting) => Promise<readonly Told[]>

const urlOf = ({ world, house, person, chance }: Acting): string =>
  world.url(chance.below(world.rig.nodes.length), house, person.endpoint)

/** The name of something of a server behind the endpoint, of one of an era where only that has it. */
function nameAt({ person, chance }: Acting, name: string, era?: Member['era']): string {
  const { members, separator } = person.endpoint
  const able = members.filter((each) => era === undefined || each.era === era)
  return `${chance.pick(able.length > 0 ? able : members).name}${separator}${name}`
}

const memberOf = ({ person, chance }: Acting): string => chance.pick(person.endpoint.members).name
const legacyMember = ({ person }: Acting): string =>
  (person.endpoint.members.find(({ era }) => era === 'legacy') ?? person.endpoint.members[0])?.name ?? ''
const modernMember = ({ person }: Acting): string =>
  (person.endpoint.members.find(({ era }) => era === 'modern') ?? person.endpoint.members[0])?.name ?? ''

const argumentsOf = ({ house, person, chance }: Acting): Json => ({
  canary: house.canary,
  of: person.name,
  n: chance.below(100)
})

async function call(acting: Acting, name: string, args: Json): Promise<Heard[]> {
  const { house, person, chance, known } = acting
  const params = { name, arguments: args, _meta: { progressToken: `${house.canary} ${person.name}` } }
  if (known.session !== undefined && chance.chance(0.5))
    return [
      await say(acting, known.session, {
        id: `${house.canary}-${chance.below(1e9)}`,
        method: 'tools/call',
        params
      })
    ]
  return [await modern(acting, 'tools/call', params)]
}

const modern = (acting: Acting, method: string, params: Json): Promise<Heard> =>
  sayModern(acting, urlOf(acting), method, params, {
    capabilities,
    id: `${acting.house.canary}-modern`,
    meta: { ...(params['_meta'] as object | undefined), 'io.modelcontextprotocol/logLevel': 'debug' }
  })

/** As in 2026-07-28, with one's own key. */
const sayModern = (
  { world, person }: Acting,
  url: string,
  method: string,
  params: Json,
  options: ModernOptions = {}
): Promise<Heard> => world.wire.ask(url, modernMessage(method, params, { token: person.key, ...options }))

/** A message in a session. */
const say = (
  acting: Acting,
  { headers }: Pick<LegacyClient, 'headers'>,
  message: Json,
  url = urlOf(acting)
): Promise<Heard> =>
  acting.world.wire.ask(url, {
    headers: { ...jsonHeaders, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message })
  })

async function ask(acting: Acting, method: string, params: Json): Promise<Heard[]> {
  const { known, chance } = acting
  if (known.session === undefined || chance.chance(0.5)) return [await modern(acting, method, params)]
  return [await say(acting, known.session, { id: `r-${chance.below(1e9)}`, method, params })]
}

const openSession: Act = async (acting) => {
  const { known, person, chance } = acting
  known.stream?.cut()
  delete known.stream
  known.session = await legacyClient(urlOf(acting), person.key, chance.pick(['2025-06-18', '2025-11-25']), capabilities)
  return [told(known.session.initialized)]
}

const listKinds = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

const ordinary: ReadonlyArray<readonly [kind: string, act: Act]> = [
  [
    'list',
    async (acting) => {
      const { known, chance } = acting
      const method = chance.pick(listKinds)
      const answers = await ask(acting, method, {})
      known.cursor = answers[0]?.last()?.['result']?.nextCursor ?? known.cursor
      return answers
    }
  ],
  ['discover', async (acting) => [await modern(acting, 'server/discover', {})]],
  ['echo', (acting) => call(acting, nameAt(acting, 'echo'), argumentsOf(acting))],
  [
    'error',
    (acting) =>
      call(acting, nameAt(acting, acting.chance.pick(['rpcerror', 'fail'])), {
        message: `error of ${acting.house.canary}`,
        data: argumentsOf(acting)
      })
  ],
  [
    'notifications',
    (acting) =>
      call(acting, nameAt(acting, 'steps', 'legacy'), {
        steps: [{ progress: 1 }, { log: `log of ${acting.house.canary}` }, { progress: 2 }],
        push: acting.chance.chance(0.3)
      })
  ],
  [
    'prompt',
    (acting) =>
      ask(acting, 'prompts/get', {
        name: nameAt(acting, 'greet'),
        arguments: { who: acting.house.canary }
      })
  ],
  [
    'resource',
    (acting) => {
      const { house, chance } = acting
      const own = `test://${house.canary}/${chance.pick(['one', 'two', 'item/7'])}`
      return ask(acting, 'resources/read', { uri: `gatehouse://${memberOf(acting)}/${own}` })
    }
  ],
  [
    'completion',
    (acting) =>
      ask(acting, 'completion/complete', {
        ref: { type: 'ref/prompt', name: nameAt(acting, 'greet', 'legacy') },
        argument: { name: 'who', value: acting.house.canary }
      })
  ],
  [
    'subscription',
    async (acting) => {
      const { known, house } = acting
      const uri = `gatehouse://${legacyMember(acting)}/test://${house.canary}/one`
      if (known.session === undefined) return []
      const { session } = known
      const subscribed = await say(acting, session, { id: 's', method: 'resources/subscribe', params: { uri } })
      const touched = await call(acting, `${legacyMember(acting)}${acting.person.endpoint.separator}touch`, {
        uri: `test://${house.canary}/one`
      })
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
        name: nameAt(acting, 'steps', 'legacy'),
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
        (message: Json) => isServerRequest(message) || 'error' in message || 'result' in message
      )) as Json
      if (isServerRequest(asked))
        await say(acting, session, {
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
      const params = { name: nameAt(acting, 'ask', 'modern'), arguments: argumentsOf(acting) }
      const first = await modern(acting, 'tools/call', params)
      const { requestState, inputRequests } = first.last()?.['result'] ?? {}
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
      const made = await modern(acting, 'tools/call', {
        name: nameAt(acting, 'task', 'modern'),
        arguments: argumentsOf(acting)
      })
      const taskId = made.last()?.['result']?.taskId as unknown
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
        return [{ status: known.stream.status, head: '', text: known.stream.text() }]
      }
      if (known.listen !== undefined && known.listen.text.length > maxStreamChars) {
        const text = known.listen.text
        known.listen.close()
        delete known.listen
        return [{ status: 200, head: '', text }]
      }
      if (known.listen !== undefined) return []
      known.listen = await modernListen(
        urlOf(acting),
        {
          toolsListChanged: true,
          resourceSubscriptions: [`gatehouse://${modernMember(acting)}/test://${house.canary}/one`]
        },
        { token: person.key }
      )
      return [{ status: known.listen.status, head: '', text: known.listen.text }]
    }
  ],
  [
    'HTTP+SSE',
    async (acting) => {
      const { chance, house, person } = acting
      const client = await httpSseClient(urlOf(acting), person.key, chance.pick(['2024-11-05', '2025-06-18']))
      await client.request(chance.pick(listKinds))
      await client.request('tools/call', { name: nameAt(acting, 'echo'), arguments: argumentsOf(acting) }, house.canary)
      client.close()
      await client.ended
      return [{ status: 200, head: JSON.stringify(client.response.headers), text: client.text() }]
    }
  ],
  ['admin API', (acting) => askAdmin(acting, acting.house)],
  ['session', openSession],
  [
    'end',
    async (acting) => {
      const { known } = acting
      const ended = await known.session?.end()
      delete known.session
      return ended === undefined ? [] : [told(ended)]
    }
  ]
]

const adminPaths = ['keys', 'upstreams', 'endpoints', 'sessions', 'usage', 'audit', 'kills', 'principals', 'series']

/** As the tenant-admin of the house, of one of its own pages or of somebody else's. */
async function askAdmin({ world, house, chance }: Acting, of: House): Promise<Told[]> {
  const url = `${world.adminUrl(chance.below(world.rig.nodes.length))}/v1/tenants/${of.id}`
  const headers = { authorization: `Bearer ${house.adminKey}`, 'content-type': 'application/json' }
  const { name } = chance.pick(of.people)
  const body = JSON.stringify({ caller: { key: name } })
  if (chance.chance(0.3)) return [told(await send(`${url}/endpoints/default/catalog`, { headers, body }))]
  return [told(await send(`${url}/${chance.pick(adminPaths)}`, { method: 'GET', headers }))]
}

const elicited = ({ canary }: House): Json => ({
  message: `question of ${canary}`,
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
})

async function textOf(stream: EventStream): Promise<Told> {
  await stream.ended
  return { status: stream.status, head: '', text: stream.text() }
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
        acting.world.url(acting.chance.below(acting.world.rig.nodes.length), victim.house, victim.person.endpoint)
      ])
      const message = { id: 1, method: acting.chance.pick(['tools/list', 'ping']) }
      return [
        await say(acting, { headers }, message, at),
        await acting.world.wire.ask(at, { method: 'DELETE', headers })
      ]
    }
  ],
  [
    'foreign endpoint',
    async (acting) => [
      await sayModern(
        acting,
        acting.world.url(
          acting.chance.below(acting.world.rig.nodes.length),
          acting.victim.house,
          acting.victim.person.endpoint
        ),
        'tools/list',
        {}
      )
    ]
  ],
  ['foreign admin API', (acting) => askAdmin(acting, acting.victim.house)],
  [
    'foreign cursor',
    (acting) => ask(acting, acting.chance.pick(listKinds), { cursor: acting.victim.known.cursor ?? 'none' })
  ],
  [
    'foreign request state',
    async (acting) => [
      await modern(acting, 'tools/call', {
        name: nameAt(acting, 'ask', 'modern'),
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
      return [{ status: response.statusCode ?? 0, head: JSON.stringify(response.headers), text }]
    }
  ],
  [
    'foreign answer',
    async (acting) => {
      const { known } = acting
      if (known.session === undefined) return []
      return [
        await say(acting, known.session, {
          id: acting.chance.below(20),
          result: { action: 'accept', content: {} }
        })
      ]
    }
  ]
]

type Acts = typeof ordinary
const openings: Acts = [['session', openSession]]
const acts: Acts = [...ordinary, ...attacks]

/** Each begins or ends something, for which processes are started or answers waited for. */
const slow: ReadonlySet<string> = new Set([
  ...['session', 'end', 'streams', 'HTTP+SSE', 'input of a session', 'subscription'],
  ...['admin API', 'foreign admin API', 'foreign event', 'foreign session']
])
const [slowActs, fastActs] = [acts.filter(([kind]) => slow.has(kind)), acts.filter(([kind]) => !slow.has(kind))]

/** @param share of what is slow; undefined: each is as likely as any other */
export function nextAct({ chance, known }: Actor, share: number | undefined): Acts[number] {
  if (known.session === undefined && (share === undefined || chance.chance(10 * share))) return chance.pick(openings)
  if (share === undefined) return chance.pick(acts)
  return chance.pick(chance.chance(share) ? slowActs : fastActs)
}
