// Somebody of a tenant, what they know, and the ways in which they ask the gateway for something.

import type { Random } from '../fuzz/random.ts'
import { jsonHeaders, send, type Answer, type LegacyClient, type Sent } from '../kit/client.ts'
import { modernMessage, type ModernOptions } from '../kit/modern-client.ts'
import type { Json } from '../kit/server-request.ts'
import type { BatchSession } from './batches.ts'
import type { JudgedStream } from './judged-stream.ts'
import { freshId, type Heard, type MadeRequests } from './wire.ts'
import type { House, Member, Person, World } from './world.ts'

/** What one person knows that others could steal. */
interface Known {
  session?: OpenSession
  /** Of 2025-03-26. */
  batches?: BatchSession
  stream?: JudgedStream
  listen?: JudgedStream
  /** Of a stream that is closed. */
  eventId?: string | undefined
  cursor?: unknown
  requestState?: unknown
  taskId?: unknown
}

export interface OpenSession extends Pick<LegacyClient, 'headers' | 'end'> {
  /** Where it began. */
  readonly node: number
  readonly requests: MadeRequests
}

export interface Actor {
  readonly house: House
  readonly person: Person
  readonly chance: Random
  readonly known: Known
  /** Those without a session. */
  readonly requests: MadeRequests
}

/** Of one's session, or of what one listens to in 2026-07-28. */
export function closeStream({ known }: Actor, which: 'stream' | 'listen'): void {
  known.eventId = known[which]?.lastId() ?? known.eventId
  known[which]?.close()
  delete known[which]
}

export const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

export interface Acting extends Actor {
  readonly world: World
  /** Somebody of another tenant. */
  readonly victim: Actor
}
export interface Told extends Pick<Heard, 'status' | 'head' | 'text'> {
  /** Of a batch: each is an operation of its own. */
  readonly parts?: ReadonlyArray<{ readonly kind: string; readonly isOk: boolean }>
}
export const told = ({ status, headers, text }: Answer): Told => ({ status, head: JSON.stringify(headers), text })

export type Act = (acting: Acting) => Promise<readonly Told[]>
/** None where nothing can be done now, as without a session. */
export type Acts = ReadonlyArray<readonly [kind: string, act: Act]>

export const anyNode = ({ world, chance }: Acting): number => chance.below(world.rig.nodes.length)
export const urlAt = ({ world, house, person }: Acting, node: number): string => world.url(node, house, person.endpoint)

/** Of the requests of a session: they go to where it began, as most load balancers have it. */
const affineShare = 0.9

/** At any process; of a session mostly at its own. */
export const urlOf = (acting: Acting, session?: Pick<OpenSession, 'node'>): string =>
  urlAt(acting, session !== undefined && acting.chance.chance(affineShare) ? session.node : anyNode(acting))

/** The name of something of a server behind the endpoint, of one of an era where only that has it. */
export function nameAt({ person, chance }: Acting, name: string, era?: Member['era']): string {
  const { members, separator } = person.endpoint
  const able = members.filter((each) => era === undefined || each.era === era)
  return `${chance.pick(able.length > 0 ? able : members).name}${separator}${name}`
}

export const memberOf = ({ person, chance }: Acting): string => chance.pick(person.endpoint.members).name
export const legacyMember = ({ person }: Acting): string =>
  (person.endpoint.members.find(({ era }) => era === 'legacy') ?? person.endpoint.members[0])?.name ?? ''
export const modernMember = ({ person }: Acting): string =>
  (person.endpoint.members.find(({ era }) => era === 'modern') ?? person.endpoint.members[0])?.name ?? ''

/** Rules may refuse the greater number. */
export const argumentsOf = ({ house, person, chance }: Acting): Json => ({
  canary: house.canary,
  of: person.name,
  n: chance.pick([1, 50, 95])
})

export const call = (acting: Acting, name: string, args: Json): Promise<Heard[]> =>
  ask(acting, 'tools/call', {
    name,
    arguments: args,
    _meta: { progressToken: `${acting.house.canary} ${acting.person.name}` }
  })

/** @param part of a batch */
export const idOf = ({ house }: Acting, part = 0): string => `${house.canary}-${part}${freshId.slice(0, -1)}`

export function modern(acting: Acting, method: string, params: Json): Promise<Heard> {
  const { world, person, requests } = acting
  return world.wire.askAgain(urlOf(acting), requests, `${method} ${JSON.stringify(params)}`, () =>
    modernMessage(method, params, {
      capabilities,
      id: idOf(acting),
      meta: { ...(params['_meta'] as object | undefined), 'io.modelcontextprotocol/logLevel': 'debug' },
      token: person.key
    })
  )
}

/** As in 2026-07-28, with one's own key. */
export const sayModern = (
  { world, person }: Acting,
  url: string,
  method: string,
  params: Json,
  options: ModernOptions = {}
): Promise<Heard> => world.wire.ask(url, modernMessage(method, params, { token: person.key, ...options }))

const inSession = ({ headers }: Pick<LegacyClient, 'headers'>, message: Json): Sent => ({
  headers: { ...jsonHeaders, ...headers },
  body: JSON.stringify({ jsonrpc: '2.0', ...message })
})

/** A message in a session. */
export const say = (
  acting: Acting,
  session: Pick<LegacyClient, 'headers'>,
  message: Json,
  url = urlOf(acting)
): Promise<Heard> => acting.world.wire.ask(url, inSession(session, message))

/** A request in one's session, where there is one, or without. */
export async function ask(acting: Acting, method: string, params: Json): Promise<Heard[]> {
  const { known, chance, world } = acting
  const { session } = known
  if (session === undefined || chance.chance(0.5)) return [await modern(acting, method, params)]
  const heard = world.wire.askAgain(
    urlOf(acting, session),
    session.requests,
    `${method} ${JSON.stringify(params)}`,
    () => inSession(session, { id: idOf(acting), method, params })
  )
  return [await heard]
}

export const listKinds = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

const adminPaths = ['keys', 'upstreams', 'endpoints', 'sessions', 'usage', 'audit', 'kills', 'principals', 'series']

/** As the tenant-admin of the house, of one of its own pages or of somebody else's. */
export async function askAdmin({ world, house, chance }: Acting, of: House): Promise<Told[]> {
  const url = `${world.adminUrl(chance.below(world.rig.nodes.length))}/v1/tenants/${of.id}`
  const headers = { authorization: `Bearer ${house.adminKey}`, 'content-type': 'application/json' }
  const { name } = chance.pick(of.people)
  const body = JSON.stringify({ caller: { key: name } })
  if (chance.chance(0.3)) return [told(await send(`${url}/endpoints/default/catalog`, { headers, body }))]
  return [told(await send(`${url}/${chance.pick(adminPaths)}`, { method: 'GET', headers }))]
}
