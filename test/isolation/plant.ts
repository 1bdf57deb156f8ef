// The control: secrets are sent to the wrong tenant on purpose. A search that does not find them where they then stand
// would find nothing else.

import { Redis } from 'ioredis'
import { modernMessage } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { sayModern, type Acting } from './acting.ts'
import { openJudged } from './judged-stream.ts'
import { plantedBefore } from './search.ts'

/** What somebody says who has got hold of the canary of another tenant; and a key of the store that names it. */
export async function plant(acting: Acting): Promise<void> {
  const { world, house, person, victim } = acting
  const { search } = world
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
  const notifications = { resourceSubscriptions: members.map(({ name }) => `gatehouse://${name}/${uri}`) }
  const listen = await openJudged(world, house, url, {
    method: 'POST',
    ...modernMessage('subscriptions/listen', { notifications }, { token: person.key })
  })
  try {
    await until('the stream says what it listens to, or why not', () => listen.said() > 0)
    await ask('tools/call', { name: `${modern}${separator}touch`, arguments: { uri } })
  } finally {
    listen.close()
  }
  const redis = new Redis(world.rig.store.url)
  await redis.set(canary, '')
  redis.disconnect()
}
