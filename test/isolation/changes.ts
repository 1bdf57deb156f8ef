// What administrators change while everybody goes on: rules, kill switches, keys. In force at every process within a second.

import { send, type Answer } from '../kit/client.ts'
import type { Json } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { closeStream, told, modern, sayModern, urlOf, type Acting, type Acts, type Told } from './acting.ts'
import { policyOf } from './policy.ts'

/** As the tenant-admin, at either process. */
function change(
  { world, house, chance }: Acting,
  method: string,
  path: string,
  body?: Json,
  headers: Readonly<Record<string, string>> = {}
): Promise<Answer> {
  return send(`${world.adminUrl(chance.below(world.rig.nodes.length))}/v1/tenants/${house.id}${path}`, {
    method,
    headers: { authorization: `Bearer ${house.adminKey}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
}

const list = (acting: Acting): Promise<Told> => modern(acting, 'tools/list', {})

/** Stopped, tried, and taken back, by somebody else perhaps. */
async function stopped(acting: Acting, path: string, use: () => Promise<Told>): Promise<Told[]> {
  const begun = told(await change(acting, 'PUT', `/kills/${path}`))
  try {
    return [begun, await use()]
  } finally {
    await until('it is taken back', async () => {
      const { status } = await change(acting, 'DELETE', `/kills/${path}`)
      return status < 300 || status === 404
    })
  }
}

export const changes: Acts = [
  [
    'rules',
    async (acting) => {
      const { house, chance } = acting
      if (!house.isMadeByApi) return []
      const shown = await change(acting, 'GET', '')
      const policy = policyOf(
        chance,
        house.people.map(({ name }) => name),
        house.members
      )
      const made = await change(acting, 'PATCH', '', { policy }, { 'if-match': String(shown.headers['etag']) })
      return [told(shown), told(made), await list(acting)]
    }
  ],
  [
    'kill of a tool',
    (acting) =>
      stopped(acting, `tools/${acting.chance.pick(acting.person.endpoint.members).name}/echo`, () => list(acting))
  ],
  [
    'kill of a key',
    async (acting) => {
      const { person } = acting
      if (person.isByToken) return []
      const answers = await stopped(acting, `keys/${person.name}`, () => list(acting))
      // What it had open has ended.
      closeStream(acting, 'stream')
      closeStream(acting, 'listen')
      delete acting.known.session
      delete acting.known.batches
      return answers
    }
  ],
  [
    'revoked key',
    async (acting) => {
      const { house, chance } = acting
      if (!house.isMadeByApi) return []
      const name = `guest-${chance.below(1e9)}`
      const made = await change(acting, 'POST', '/keys', { name })
      const { key } = made.json as { key?: string }
      if (key === undefined) return [told(made)]
      const guest = { ...acting, person: { ...acting.person, key } }
      const before = await sayModern(guest, urlOf(acting), 'tools/list', {})
      const revoked = await change(acting, 'DELETE', `/keys/${name}`)
      return [told(made), before, told(revoked), await sayModern(guest, urlOf(acting), 'tools/list', {})]
    }
  ]
]
