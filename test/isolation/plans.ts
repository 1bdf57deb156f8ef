// What tenants are, by chance: which people, servers, endpoints and rules they have. Names are few, so that tenants share
// them; each has a secret word, its canary, that stands in all that its people send and its servers say.

import { hash, randomBytes } from 'node:crypto'
import type { Random } from '../fuzz/random.ts'
import type { Teardown } from '../kit/until.ts'
import { policyOf } from './policy.ts'
import type { Owner, Search } from './search.ts'
import { startNew, startOld } from './servers.ts'
import type { Endpoint, House, Member, Person } from './world.ts'

/** An admin key, which has 43 characters after its prefix. */
export const keyOf = (name: string, start = ''): string =>
  `gha_${start}${hash('sha256', name, 'base64url').slice(start.length)}`
export const ids = ['north', 'north-2', 'no', 'south', 'west', 'east']
const names = ['files', 'tickets', 'search', 'wiki', 'files-2']
const peopleNames = ['ada', 'bob', 'cyd', 'dan']
const oldTools = ['echo', 'rpcerror', 'fail', 'steps', 'slow', 'touch', 'content', 'pid']
const newTools = ['echo', 'rpcerror', 'fail', 'ask', 'touch', 'task', 'result', 'progress']

export function some<T>(chance: Random, from: readonly T[], least: number, most: number): T[] {
  const left = [...from]
  const count = Math.min(left.length, least + chance.below(most - least + 1))
  return Array.from({ length: count }, () => left.splice(chance.below(left.length), 1)).flat()
}

/** The gateway takes it, as a whole, out of what a server says: the canary alone has to be seen where it comes. */
const credentialOf = (canary: string): string => `${canary}-credential`

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
async function membersOf(t: Teardown, canary: string, { chance, hasManyProcesses, owner, search }: PlanOptions) {
  const [local, ...overHttp] = some(chance, names, 3, names.length)
  const isolation = () => chance.pick(['session', 'principal', 'shared'])
  const members: Member[] = []
  const definitions: Record<string, object> = {}
  for (const [at, name] of overHttp.entries()) {
    const isOld = at % 2 === 0
    let told = 0
    const judge = (text: string): void => {
      if (search.judge('server', owner, text)) told++
    }
    const url = isOld
      ? await startOld(t, judge, { asEvents: chance.chance(0.5), ...listsOf(canary, chance, oldTools) })
      : await startNew(t, judge, listsOf(canary, chance, newTools))
    members.push({ name, era: isOld ? 'legacy' : 'modern', told: () => told })
    const headers = { 'X-Secret': credentialOf(canary) }
    definitions[name] = { type: 'http', url, headers, isolation: isOld ? 'session' : isolation() }
  }
  if (local !== undefined && chance.chance(0.7)) {
    members.push({ name: local, era: 'legacy', told: () => 0 })
    definitions[local] = {
      ...stdio(listsOf(canary, chance, oldTools)),
      env: { CREDENTIAL: credentialOf(canary) },
      isolation: hasManyProcesses ? isolation() : 'shared'
    }
  }
  return { members, definitions }
}

export interface Plan extends Pick<House, 'id' | 'letter' | 'canary' | 'members' | 'adminKey' | 'isMadeByApi'> {
  readonly people: ReadonlyArray<Omit<Person, 'key' | 'isByToken'> & { readonly key: string | undefined }>
  readonly tenant: object
}

export interface PlanOptions {
  readonly owner: Owner
  readonly mark: string
  readonly search: Search
  readonly chance: Random
  /** At most. */
  readonly people: number
  /** Whether servers over stdio may be one for each person or session: a start costs what a hundred calls do. */
  readonly hasManyProcesses: boolean
  readonly issuerUrl: string
}

export async function planOf(t: Teardown, options: PlanOptions): Promise<Plan> {
  const { mark, chance, people: most, issuerUrl } = options
  const { id, letter } = options.owner
  const canary = `${mark}${letter}-canary-${id}`
  const { members, definitions } = await membersOf(t, canary, options)
  const endpointOf = (name: string, own: readonly Member[]): Endpoint => ({
    name,
    members: own,
    separator: chance.pick(['__', '__', '.'])
  })
  const endpoints = [endpointOf('default', members)]
  if (chance.chance(0.5)) endpoints.push(endpointOf(chance.pick(['team', 'lab']), some(chance, members, 2, 3)))
  const others = Array.from({ length: Math.max(0, most - peopleNames.length) }, (_, n) => `person-${n}`)
  const keyed = some(chance, [...peopleNames, ...others], 2, most)
  const keys = keyed.map((name) => ({ name, key: `gh_${mark}${letter}_${name}_${randomBytes(12).toString('hex')}` }))
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
  const isMadeByApi = chance.chance(0.5)
  return { id, letter, canary, members, people, tenant, isMadeByApi, adminKey: keyOf(canary, `${mark}${letter}`) }
}
