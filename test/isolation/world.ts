// Tenants that have nothing to do with each other, on two processes of the gateway: each with people, servers of every
// kind and a secret word, its canary, that stands in all that its people send and its servers say.

import { randomBytes } from 'node:crypto'
import { startModern, type ModernUpstream } from '../kit/modern-server.ts'
import { replicas, type Replicas } from '../kit/replicas.ts'
import { startUpstream, type HttpUpstream } from '../kit/upstream.ts'
import { type Teardown } from '../kit/until.ts'
import { adminConfig } from './admin.ts'
import type { Random } from '../fuzz/random.ts'

export interface Person {
  readonly name: string
  readonly key: string
}

export interface House {
  readonly id: string
  readonly canary: string
  readonly people: readonly Person[]
  readonly old: HttpUpstream
  readonly modern: ModernUpstream
  /** What no other tenant may ever see. */
  readonly secrets: readonly string[]
}

export interface World {
  readonly houses: readonly House[]
  readonly rig: Replicas
  /** Of a tenant at one of the processes. */
  url(node: number, house: House): string
}

const tool = (canary: string) => (name: string) => ({
  name,
  description: `${name} of ${canary}`,
  inputSchema: { type: 'object' }
})
const oldTools = ['echo', 'rpcerror', 'fail', 'steps', 'slow', 'touch', 'content', 'pid']
const newTools = ['echo', 'rpcerror', 'fail', 'ask', 'touch', 'task', 'result', 'progress']

function listsOf(canary: string, tools: readonly string[]) {
  return {
    instructions: `instructions of ${canary}`,
    tools: tools.map(tool(canary)),
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

/** Rules that take something from somebody; of all tenants different ones. */
function policyOf(chance: Random): object {
  const rules = Array.from({ length: chance.below(4) }, (_, at) => ({
    name: `rule-${at}`,
    effect: chance.pick(['deny', 'allow', 'deny']),
    ...(chance.chance(0.6) && { who: { keys: [chance.pick(['ada', 'bob'])] } }),
    what: {
      ...(chance.chance(0.5) && { upstreams: [chance.pick(['old', 'modern', 'local'])] }),
      names: [chance.pick(['f*', 'content', 'pid', 'progress', '*two'])]
    }
  }))
  return { default: 'allow', rules }
}

export async function buildWorld(
  t: Teardown,
  chance: Random,
  { people: peopleOfHouse, processes }: { readonly people: number; readonly processes: number }
): Promise<World> {
  const houses = await Promise.all(
    ['north', 'south', 'west'].map(async (id): Promise<House> => {
      const canary = `canary-${id}-${randomBytes(6).toString('hex')}`
      const others = Array.from({ length: peopleOfHouse - 2 }, (_, n) => `person-${n}`)
      const people = ['ada', 'bob', ...others].map((name) => ({
        name,
        key: `gh_${id}_${name}_${randomBytes(12).toString('hex')}`
      }))
      const old = await startUpstream({ name: canary, answers: 'sse', ...listsOf(canary, oldTools) })
      const modern = await startModern({ name: canary, ...listsOf(canary, newTools) })
      t.teardown(() => Promise.all([old.close(), modern.close()]))
      return { id, canary, people, old, modern, secrets: [canary, ...people.map(({ key }) => key)] }
    })
  )
  const tenants = Object.fromEntries(
    houses.map(({ id, canary, people, old, modern }) => [
      id,
      {
        auth: { keys: people },
        upstreams: {
          old: { type: 'http', url: old.url, headers: { 'X-Secret': canary } },
          modern: { type: 'http', url: modern.url, isolation: chance.pick(['session', 'principal', 'shared']) },
          local: { ...stdio({ name: canary, ...listsOf(canary, oldTools) }), env: { CANARY: canary } }
        },
        policy: policyOf(chance),
        limits: { each: { per: ['principal'], perSecond: 10_000 }, all: { perDay: 100_000_000 } },
        audit: { arguments: true }
      }
    ])
  )
  // The one that the kit makes has no part in it.
  const rig = await replicas(
    t,
    {
      upstreams: {},
      tenants,
      limits: { pageSize: 2 },
      top: { audit: {}, admin: adminConfig }
    },
    Array.from({ length: processes }, () => ({}))
  )
  return { houses, rig, url: (node, { id }) => `${rig.nodes[node]?.url}/t/${id}/mcp` }
}
