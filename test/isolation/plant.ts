// The control: secrets are sent to the wrong tenant on purpose. A search that does not find them where they then stand
// would find nothing else.

import { Redis } from 'ioredis'
import { modernListen } from '../kit/modern-listen.ts'
import { until } from '../kit/until.ts'
import { sayModern, type Acting } from './acting.ts'
import { plantedBefore, type Search } from './search.ts'

/** What somebody says who has got hold of the canary of another tenant; and a key of the store that names it. */
export async function plant(acting: Acting, search: Search): Promise<void> {
  const { world, house, person, victim } = acting
  const canary = `${plantedBefore}${victim.house.canary}`
  const url = world.url(0, house, person.endpoint)
  const { members, separator } = person.endpoint
  const ask = async (method: string, params: Record<string, unknown>): Promise<void> => {
    const { head, text } = await sayModern(acting, url, method, params)
    search.judge('answer', house, head + text)
  }
  await ask('tools/call', { name: canary })
  // Of whichever server rules let this person call.
  for (const { name } of members)
    await ask('tools/call', { name: `${name}${separator}echo`, arguments: { canary, n: 1 } })
  const modern = members.find(({ era }) => era === 'modern')?.name
  const uri = `test://${canary}/one`
  const listen = await modernListen(
    url,
    { resourceSubscriptions: members.map(({ name }) => `gatehouse://${name}/${uri}`) },
    { token: person.key }
  )
  try {
    if (listen.status === 200) {
      await until('the stream says what it listens to', () => listen.text.includes('\n\n'))
      await ask('tools/call', { name: `${modern}${separator}touch`, arguments: { uri } })
    }
    search.judge('stream of events', house, listen.text)
  } finally {
    listen.close()
  }
  const redis = new Redis(world.rig.store.url)
  await redis.set(canary, '')
  redis.disconnect()
}
