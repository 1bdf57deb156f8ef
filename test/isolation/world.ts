// Tenants that have nothing to do with each other, on several processes of the gateway with one store; some are in the
// configuration file, some made by the admin API.

import { hash } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Random } from '../fuzz/random.ts'
import { send } from '../kit/client.ts'
import { issuer, type Issuer } from '../kit/issuer.ts'
import { replicas, type Replicas } from '../kit/replicas.ts'
import { until, type Teardown } from '../kit/until.ts'
import { randomMarks, type Marks } from './marks.ts'
import { ids, keyOf, planOf, some, type Plan, type PlanOptions } from './plans.ts'
import { createSearch, type Search } from './search.ts'
import { createWire, type Wire } from './wire.ts'

export interface Person {
  readonly name: string
  /** Of the issuer, whose token `key` is. */
  readonly isByToken: boolean
  /** A key, or an access token. */
  readonly key: string
  readonly endpoint: Endpoint
}

/** A server behind an endpoint, by the name that both its tenant and others give it. */
export interface Member {
  readonly name: string
  readonly era: 'legacy' | 'modern'
  /** How often it was told something of its own tenant, where it is no process of its own. */
  readonly told: () => number
}

export interface Endpoint {
  readonly name: string
  readonly separator: string
  readonly members: readonly Member[]
}

export interface House {
  readonly id: string
  /** Follows the mark in all secrets of the tenant. */
  readonly letter: string
  readonly canary: string
  readonly people: readonly Person[]
  readonly members: readonly Member[]
  /** Of its tenant-admin. */
  readonly adminKey: string
  /** By the admin API, while the processes run; the others are in their configuration file. */
  readonly isMadeByApi: boolean
}

export interface World {
  readonly houses: readonly House[]
  readonly search: Search
  readonly rig: Replicas
  readonly redisPid: number
  readonly wire: Wire
  /** Of an endpoint of a tenant at one of the processes. */
  url(node: number, house: House, endpoint: Endpoint): string
  /** Of the admin API of one of them. */
  adminUrl(node: number): string
}

export const adminHeaders = { authorization: `Bearer ${keyOf('platform')}` }

/** With a key for everybody who has none: a token, which only its own endpoint takes. */
async function houseOf(plan: Plan, origin: string, marks: Marks, issuer: Issuer): Promise<House> {
  const people = await Promise.all(
    plan.people.map(async ({ key, ...person }): Promise<Person> => {
      const resource = `${origin}${pathOf(plan.id, person.endpoint)}`
      return { ...person, isByToken: key === undefined, key: key ?? (await tokenOf(plan, resource, marks, issuer)) }
    })
  )
  const { tenant: _tenant, ...rest } = plan
  return { ...rest, people }
}

async function tokenOf({ id, letter }: Plan, resource: string, { mark, scopesOf }: Marks, { token }: Issuer) {
  for (const scope of scopesOf(letter)) {
    const made = await token({ resource, scope: `mcp ${scope}` })
    if (made.includes(mark + letter)) return made
  }
  throw new Error(`no token of ${id} holds the mark`)
}

const pathOf = (id: string, { name }: Endpoint): string => `/t/${id}${name === 'default' ? '' : `/${name}`}/mcp`

export async function buildWorld(
  t: Teardown,
  chance: Random,
  { processes, ...options }: Pick<PlanOptions, 'people' | 'hasManyProcesses'> & { readonly processes: number }
): Promise<World> {
  const marks = randomMarks()
  const owners = some(chance, ids, 3, 4).map((id, at) => ({ id, letter: marks.letters[at] ?? '' }))
  const search = createSearch(marks.mark, owners)
  const scopes = ['mcp', ...owners.flatMap(({ letter }) => marks.scopesOf(letter))]
  const tokens = await issuer(t, { lifetimeSeconds: 86_000, scopes })
  const plans: Plan[] = []
  // One after the other: each takes of the same source of chance.
  for (const owner of owners)
    plans.push(await planOf(t, { ...options, owner, search, mark: marks.mark, chance, issuerUrl: tokens.url }))
  const admins = plans.map(({ id, adminKey }) => ({ name: id, role: 'tenant-admin', tenants: [id], key: adminKey }))
  const platform = { name: 'platform', role: 'platform-admin', key: keyOf('platform') }
  const adminKeys = [platform, ...admins].map(({ key, ...entry }) => ({ ...entry, sha256: hash('sha256', key) }))
  // The tenant that the kit makes has no part in it.
  const rig = await replicas(
    t,
    {
      upstreams: {},
      tenants: Object.fromEntries(
        plans.filter(({ isMadeByApi }) => !isMadeByApi).map(({ id, tenant }) => [id, tenant])
      ),
      limits: { pageSize: 2 },
      top: { audit: {}, admin: { listen: { port: 0 }, keys: adminKeys, allowedCommands: [process.execPath] } }
    },
    Array.from({ length: processes }, () => ({
      env: { NODE_OPTIONS: process.env['ISOLATION_NODE_OPTIONS'] ?? '' }
    }))
  )
  const listening = await Promise.all(
    rig.nodes.map((node) => node.logged('it listens', ({ msg }) => msg === 'listening'))
  )
  const adminUrl = (node: number): string => String(listening[node]?.['adminUrl'])
  for (const { id, tenant, isMadeByApi } of plans) if (isMadeByApi) await makeByApi(adminUrl(0), id, tenant)
  for (const { id } of plans.filter(({ isMadeByApi }) => isMadeByApi))
    for (const { url } of rig.nodes)
      await until(`${id} is at every process`, async () => (await send(`${url}/t/${id}/mcp`)).status === 401)
  return {
    houses: await Promise.all(plans.map((plan) => houseOf(plan, rig.origin, marks, tokens))),
    search,
    rig,
    redisPid: await pidOf(rig.store.url),
    wire: createWire(t),
    url: (node, { id }, endpoint) => `${rig.nodes[node]?.url}${pathOf(id, endpoint)}`,
    adminUrl
  }
}

async function pidOf(redisUrl: string): Promise<number> {
  const redis = new Redis(redisUrl)
  const info = await redis.info('server')
  redis.disconnect()
  return Number(/process_id:(\d+)/.exec(info)?.[1])
}

async function makeByApi(adminUrl: string, id: string, tenant: object): Promise<void> {
  const { status, text } = await send(`${adminUrl}/v1/tenants/${id}`, {
    method: 'PUT',
    headers: { ...adminHeaders, 'content-type': 'application/json' },
    body: JSON.stringify(tenant)
  })
  if (status !== 201) throw new Error(`the tenant is not made: ${status} ${text}`)
}
