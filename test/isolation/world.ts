// Tenants that have nothing to do with each other, on several processes of the gateway, made by chance with a seed: how
// many, with which people, servers, endpoints and rules. Names are few, so that tenants share them; each has a secret
// word, its canary, that stands in all that its people send and its servers say.

import { hash, randomBytes } from 'node:crypto'
import type { Random } from '../fuzz/random.ts'
import { issuer, type Issuer } from '../kit/issuer.ts'
import { startModern } from '../kit/modern-server.ts'
import { replicas, type Replicas } from '../kit/replicas.ts'
import { type Teardown } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { createWire, type Wire } from './wire.ts'

export interface Person {
  readonly name: string
  /** A key, or an access token. */
  readonly key: string
  readonly endpoint: Endpoint
}

/** A server behind an endpoint, by the name that both its tenant and others give it. */
export interface Member {
  readonly name: string
  readonly era: 'legacy' | 'modern'
  /** What it was told, where it is no process of its own. */
  readonly seen: unknown[]
}

export interface Endpoint {
  readonly name: string
  readonly separator: string
  readonly members: readonly Member[]
}

export interface House {
  readonly id: string
  readonly canary: string
  readonly people: readonly Person[]
  readonly members: readonly Member[]
  /** Of its tenant-admin. */
  readonly adminKey: string
  /** What no other tenant may ever see. */
  readonly secrets: readonly string[]
}

export interface World {
  readonly houses: readonly House[]
  readonly rig: Replicas
  readonly wire: Wire
  /** Of an endpoint of a tenant at one of the processes. */
  url(node: number, house: House, endpoint: Endpoint): string
  /** Of the admin API of one of them. */
  adminUrl(node: number): string
}

const keyOf = (name: string): string => `gha_${hash('sha256', name, 'base64url')}`
export const adminHeaders = { authorization: `Bearer ${keyOf('platform')}` }

const ids = ['north', 'north-2', 'no', 'south', 'west', 'east']
const names = ['files', 'tickets', 'search', 'wiki', 'files-2']
const peopleNames = ['ada', 'bob', 'cyd', 'dan']
const oldTools = ['echo', 'rpcerror', 'fail', 'steps', 'slow', 'touch', 'content', 'pid']
const newTools = ['echo', 'rpcerror', 'fail', 'ask', 'touch', 'task', 'result', 'progress']

function some<T>(chance: Random, from: readonly T[], least: number, most: number): T[] {
  const left = [...from]
  const count = Math.min(left.length, least + chance.below(most - least + 1))
  return Array.from({ length: count }, () => left.splice(chance.below(left.length), 1)).flat()
}

/** What a server has: of the tools most, of all else always the same. */
function listsOf(canary: string, chance: Random, tools: readonly string[]) {
  return {
    name: canary,
    instructions: `instructions of ${canary}`,
    tools: tools
      .filter(() => chance.chance(0.9))
      .map((name) => ({ name, description: `${name} of ${canary}`, inputSchema: { type: 'object' } })),
    prompts: [{ name: 'greet', description: `prompt of ${canary}`, arguments: [{ name: 'who' }] }],
    resources: [
      { uri: `test://${canary}/one`, name: `one of ${canary}` },
      { uri: `test://${canary}/two`, name: 'two' }
    ],
    templates: [{ uriTemplate: `test://${canary}/item/{id}`, name: `item of ${canary}` }]
  }
}

const stdio = (script: object) => ({
  command: process.execPath,
  args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify(script)]
})

/** Two of each era, or one, over HTTP; and perhaps a process, whose era is the older one. */
async function membersOf(t: Teardown, canary: string, chance: Random) {
  const [local, ...overHttp] = some(chance, names, 3, names.length)
  const isolation = () => chance.pick(['session', 'principal', 'shared'])
  const members: Member[] = []
  const definitions: Record<string, object> = {}
  for (const [at, name] of overHttp.entries()) {
    const isOld = at % 2 === 0
    const server = isOld
      ? await startUpstream({ answers: 'sse', ...listsOf(canary, chance, oldTools) })
      : await startModern(listsOf(canary, chance, newTools))
    t.teardown(() => server.close())
    members.push({ name, era: isOld ? 'legacy' : 'modern', seen: server.seen })
    const headers = { 'X-Secret': canary }
    definitions[name] = { type: 'http', url: server.url, headers, isolation: isOld ? 'session' : isolation() }
  }
  if (local !== undefined && chance.chance(0.7)) {
    members.push({ name: local, era: 'legacy', seen: [] })
    definitions[local] = {
      ...stdio(listsOf(canary, chance, oldTools)),
      env: { CANARY: canary },
      isolation: isolation()
    }
  }
  return { members, definitions }
}

/** Rules that take something from somebody, and leave the first of the people most. */
function policyOf(chance: Random, people: readonly string[], members: readonly Member[]): object {
  const isOpen = chance.chance(0.6)
  const open = { name: 'open', effect: 'allow', ...(chance.chance(0.5) && { who: { keys: people.slice(0, 2) } }) }
  const rules = Array.from({ length: chance.below(5) }, (_, at) => ({
    name: `rule-${at}`,
    effect: chance.pick(['deny', 'allow', 'deny']),
    ...(chance.chance(0.6) && { who: chance.pick([{ keys: people.slice(1, 2) }, { subjects: ['robot'] }]) }),
    what: {
      ...(chance.chance(0.5) && { upstreams: [chance.pick(members).name] }),
      names: [chance.pick(['f*', 'content', 'pid', 'progress', '*two', 'slow'])]
    }
  }))
  const sums = { name: 'sums', effect: 'deny', what: { kinds: ['tool'] }, when: 'has(args.n) && args.n > 90' }
  const when = chance.chance(0.5) ? [sums] : []
  return isOpen
    ? { default: 'allow', rules: [...rules, ...when] }
    : { default: 'deny', rules: [open, ...rules, ...when] }
}

interface Plan extends Pick<House, 'id' | 'canary' | 'members' | 'adminKey'> {
  readonly people: ReadonlyArray<Omit<Person, 'key'> & { readonly key: string | undefined }>
  readonly tenant: object
}

async function planOf(t: Teardown, id: string, chance: Random, most: number, issuerUrl: string): Promise<Plan> {
  const canary = `canary-${id}-${randomBytes(6).toString('hex')}`
  const { members, definitions } = await membersOf(t, canary, chance)
  const endpointOf = (name: string, own: readonly Member[]): Endpoint => ({
    name,
    members: own,
    separator: chance.pick(['__', '__', '.'])
  })
  const endpoints = [endpointOf('default', members)]
  if (chance.chance(0.5)) endpoints.push(endpointOf(chance.pick(['team', 'lab']), some(chance, members, 2, 3)))
  const others = Array.from({ length: Math.max(0, most - peopleNames.length) }, (_, n) => `person-${n}`)
  const keyed = some(chance, [...peopleNames, ...others], 2, most)
  const keys = keyed.map((name) => ({ name, key: `gh_${id}_${name}_${randomBytes(12).toString('hex')}` }))
  const people = [
    ...keys.map((each) => ({ ...each, endpoint: chance.pick(endpoints) })),
    // The same person of the same issuer at each tenant.
    { name: 'robot', key: undefined, endpoint: chance.pick(endpoints) }
  ]
  const changed = { description: `changed by ${canary}`, defaults: { note: `default of ${canary}` } }
  const tenant = {
    auth: { keys, issuers: [{ issuer: issuerUrl }] },
    upstreams: definitions,
    endpoints: Object.fromEntries(
      endpoints.map(({ name, separator, members: own }) => [
        name,
        {
          upstreams: own.map((member) => member.name),
          separator,
          ...(chance.chance(0.5) && { instructions: `endpoint of ${canary}` }),
          ...(chance.chance(0.5) && { tools: { [`${own[0]?.name}/echo`]: changed } })
        }
      ])
    ),
    policy: policyOf(chance, keyed, members),
    limits: { each: { per: ['principal'], perSecond: 10_000 }, all: { perDay: 100_000_000 } },
    audit: { arguments: true }
  }
  return { id, canary, members, people, tenant, adminKey: keyOf(`${id} ${canary}`) }
}

/** With a key for everybody who has none: a token, which only its own endpoint takes. */
async function houseOf(plan: Plan, origin: string, { token }: Issuer): Promise<House> {
  const people = await Promise.all(
    plan.people.map(async ({ key, ...person }): Promise<Person> => {
      const resource = `${origin}${pathOf(plan.id, person.endpoint)}`
      return { ...person, key: key ?? (await token({ resource, scope: 'mcp' })) }
    })
  )
  const { id, canary, members, adminKey } = plan
  return { id, canary, members, adminKey, people, secrets: [canary, adminKey, ...people.map(({ key }) => key)] }
}

const pathOf = (id: string, { name }: Endpoint): string => `/t/${id}${name === 'default' ? '' : `/${name}`}/mcp`

export async function buildWorld(
  t: Teardown,
  chance: Random,
  { people, processes }: { readonly people: number; readonly processes: number }
): Promise<World> {
  const tokens = await issuer(t, { lifetimeSeconds: 86_000 })
  const plans: Plan[] = []
  // One after the other: each takes of the same source of chance.
  for (const id of some(chance, ids, 3, 4)) plans.push(await planOf(t, id, chance, people, tokens.url))
  const admins = plans.map(({ id, adminKey }) => ({ name: id, role: 'tenant-admin', tenants: [id], key: adminKey }))
  const platform = { name: 'platform', role: 'platform-admin', key: keyOf('platform') }
  const adminKeys = [platform, ...admins].map(({ key, ...entry }) => ({ ...entry, sha256: hash('sha256', key) }))
  // The tenant that the kit makes has no part in it.
  const rig = await replicas(
    t,
    {
      upstreams: {},
      tenants: Object.fromEntries(plans.map(({ id, tenant }) => [id, tenant])),
      limits: { pageSize: 2 },
      top: { audit: {}, admin: { listen: { port: 0 }, keys: adminKeys } }
    },
    Array.from({ length: processes }, () => ({}))
  )
  const listening = await Promise.all(
    rig.nodes.map((node) => node.logged('it listens', ({ msg }) => msg === 'listening'))
  )
  return {
    houses: await Promise.all(plans.map((plan) => houseOf(plan, rig.origin, tokens))),
    rig,
    wire: createWire(t),
    url: (node, { id }, endpoint) => `${rig.nodes[node]?.url}${pathOf(id, endpoint)}`,
    adminUrl: (node) => String(listening[node]?.['adminUrl'])
  }
}
