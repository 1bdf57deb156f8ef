// Somebody of a tenant, what they know, and the ways in which they ask the gateway for something.

import type { Random } from '../fuzz/random.ts'
import { jsonHeaders, send, type Answer, type LegacyClient } from '../kit/client.ts'
import type { EventStream } from '../kit/events.ts'
import { modernMessage, type ModernOptions } from '../kit/modern-client.ts'
import type { ModernStream } from '../kit/modern-listen.ts'
import type { Json } from '../kit/server-request.ts'
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

export const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

export interface Acting extends Actor {
  readonly world: World
  /** Somebody of another tenant. */
  readonly victim: Actor
}
export type Told = Pick<Heard, 'status' | 'head' | 'text'>
export const told = ({ status, headers, text }: Answer): Told => ({ status, head: JSON.stringify(headers), text })

export type Act = (acting: Acting) => Promise<readonly Told[]>
/** None where nothing can be done now, as without a session. */
export type Acts = ReadonlyArray<readonly [kind: string, act: Act]>

export const urlOf = ({ world, house, person, chance }: Acting): string =>
  world.url(chance.below(world.rig.nodes.length), house, person.endpoint)

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

export const argumentsOf = ({ house, person, chance }: Acting): Json => ({
  canary: house.canary,
  of: person.name,
  n: chance.below(100)
})

export async function call(acting: Acting, name: string, args: Json): Promise<Heard[]> {
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

export const modern = (acting: Acting, method: string, params: Json): Promise<Heard> =>
  sayModern(acting, urlOf(acting), method, params, {
    capabilities,
    id: `${acting.house.canary}-modern`,
    meta: { ...(params['_meta'] as object | undefined), 'io.modelcontextprotocol/logLevel': 'debug' }
  })

/** As in 2026-07-28, with one's own key. */
export const sayModern = (
  { world, person }: Acting,
  url: string,
  method: string,
  params: Json,
  options: ModernOptions = {}
): Promise<Heard> => world.wire.ask(url, modernMessage(method, params, { token: person.key, ...options }))

/** A message in a session. */
export const say = (
  acting: Acting,
  { headers }: Pick<LegacyClient, 'headers'>,
  message: Json,
  url = urlOf(acting)
): Promise<Heard> =>
  acting.world.wire.ask(url, {
    headers: { ...jsonHeaders, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message })
  })

export async function ask(acting: Acting, method: string, params: Json): Promise<Heard[]> {
  const { known, chance } = acting
  if (known.session === undefined || chance.chance(0.5)) return [await modern(acting, method, params)]
  return [await say(acting, known.session, { id: `r-${chance.below(1e9)}`, method, params })]
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
