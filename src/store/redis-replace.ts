// A value in Redis takes the place of the one that was read, and of no other.

import type { Cluster, Redis } from 'ioredis'
import { wholeMs } from './port.ts'

const script = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
`

/** One step: of two who have read the same value, one writes. */
export async function replaceInRedis(
  commands: Redis | Cluster,
  key: string,
  { before, value, ttlMs }: { readonly before: string; readonly value: string; readonly ttlMs: number | undefined }
): Promise<boolean> {
  const expiry = ttlMs === undefined ? [] : [wholeMs(ttlMs)]
  return (await commands.eval(script, 1, key, before, value, ...expiry)) === 1
}
