// Scripts for operations that must be atomic in Redis: leases of tokens (lease.ts), with the clock of Redis, so that
// two processes cannot get the same last token; compare-and-set and compare-and-delete of a value; and sorted sets,
// whose members all have one score.

import type { Cluster, Redis } from 'ioredis'
import type { TokenLease, LeaseRequest } from './lease.ts'
import { type MemberOptions, wholeMs } from './port.ts'
import { transaction } from './redis-connection.ts'

/** A bucket is a hash: `spent`, `at`, and of each holder `h:` and its name how many it holds, and until when. */
const leaseScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local capacity, perMs, me = tonumber(ARGV[1]), tonumber(ARGV[2]), 'h:' .. ARGV[3]
local used, want, holdMs, ttlMs = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local spent, at, had, elsewhere = 0, now, 0, 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local name, value = all[i], all[i + 1]
  if name == 'spent' then spent = tonumber(value)
  elseif name == 'at' then at = tonumber(value)
  else
    local held, ends = string.match(value, '^(%d+) (%d+)$')
    if not held or tonumber(ends) <= now then redis.call('HDEL', KEYS[1], name)
    elseif name == me then had = tonumber(held)
    else elsewhere = elsewhere + tonumber(held) end
  end
end
spent = math.max(had + elsewhere, spent - math.max(0, now - at) * perMs) + math.max(0, used - had)
local held = math.max(0, had - used)
local more = want - held
if more > 0 then
  local free = math.max(0, math.floor(capacity - spent))
  more = math.min(more, math.ceil(free / 2))
end
held = held + more
spent = spent + more
redis.call('HSET', KEYS[1], 'spent', string.format('%.17g', spent), 'at', string.format('%d', now))
if held > 0 then redis.call('HSET', KEYS[1], me, string.format('%d %d', held, now + holdMs))
else redis.call('HDEL', KEYS[1], me) end
redis.call('PEXPIRE', KEYS[1], ttlMs)
local free = capacity - spent
local wait = 0
if free < 1 then wait = perMs > 0 and math.ceil((1 - free) / perMs) or -1 end
return { held, elsewhere, math.max(0, math.floor(free)), wait }
`

export async function leaseInRedis(
  commands: Redis | Cluster,
  key: string,
  { capacity, perMs, holder, used, want, holdMs, ttlMs }: LeaseRequest
): Promise<TokenLease> {
  const asked = [capacity, perMs, holder, used, want, holdMs, Math.ceil(ttlMs)]
  const [held = 0, elsewhere = 0, left = 0, wait = 0] = (await commands.eval(leaseScript, 1, key, ...asked)) as number[]
  return { held, elsewhere, left, waitMs: wait < 0 ? Infinity : wait }
}

const replaceScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
`

/** Replaces a value in one step: of two processes that have read the same value, one writes. */
export async function replaceInRedis(
  commands: Redis | Cluster,
  key: string,
  { before, value, ttlMs }: { readonly before: string; readonly value: string; readonly ttlMs: number | undefined }
): Promise<boolean> {
  const expiry = ttlMs === undefined ? [] : [wholeMs(ttlMs)]
  return (await commands.eval(replaceScript, 1, key, before, value, ...expiry)) === 1
}

const deleteScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`

/** Deletes a value in one step: what another process has written meanwhile stays. */
export const deleteInRedis = async (commands: Redis | Cluster, key: string, value: string): Promise<boolean> =>
  (await commands.eval(deleteScript, 1, key, value)) === 1

export async function addMemberInRedis(
  commands: Redis | Cluster,
  key: string,
  member: string,
  { ttlMs, from }: MemberOptions
): Promise<void> {
  await transaction(commands.multi().zadd(key, 0, member).zremrangebylex(key, '-', `(${from}`).pexpire(key, ttlMs), 0)
}

/** https://redis.io/docs/latest/commands/zrevrangebylex/: of members with one score, by their bytes. */
export const membersInRedis = async (
  commands: Redis | Cluster,
  key: string,
  { max, before }: { readonly max: number; readonly before?: string }
): Promise<string[]> =>
  await commands.zrevrangebylex(key, before === undefined ? '+' : `(${before}`, '-', 'LIMIT', 0, max)
