// How much each tenant uses, by day: counted in each process, and written to the store some times a minute, so that it
// outlives the process and is told at every one. What a process counted since it last wrote ends with it.

import { countedName, type CallOutcome, type ObservedCall } from '../../observe/calls.ts'
import { isFailure } from '../../observe/outcomes.ts'
import type { Log } from '../../observe/log.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { usageIndexKey, usageKey, usageProcessesKept, usageTtlMs } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { every, type Clock } from '../../time/clock.ts'

const writeMs = 5_000
/** Tools of a tenant that are told apart, in a day and a process; others are counted with their upstream only. */
const maxToolsCounted = 200
const dayMs = 24 * 60 * 60 * 1000

/** The numbers that are counted. */
export const usageCounts = ['requests', 'toolCalls', 'toolErrors', 'errors', 'bytesIn', 'bytesOut'] as const
type Counts = Record<(typeof usageCounts)[number], number>
interface Part {
  calls: number
  errors: number
}
type Parts = Map<string, Part>

interface Day extends Counts {
  readonly tenant: string
  readonly day: string
  readonly upstreams: Parts
  /** The counts of tools, by upstream/name. */
  readonly tools: Parts
  isListed: boolean
  isChanged: boolean
}

interface Counted {
  readonly day: Day
  readonly method: string
  readonly upstream: Part | undefined
  readonly tool: Part | undefined
}

export interface UsageOfDay extends Readonly<Counts> {
  /** The day in UTC, such as 2026-07-28. */
  readonly day: string
  readonly upstreams: ReadonlyMap<string, { readonly calls: number; readonly errors: number }>
  readonly tools: ReadonlyMap<string, { readonly calls: number; readonly errors: number }>
}

const noCounts = (): Counts => ({ requests: 0, toolCalls: 0, toolErrors: 0, errors: 0, bytesIn: 0, bytesOut: 0 })

const dayAt = (now: number): string => new Date(now).toISOString().slice(0, 10)

export type Usage = ReturnType<typeof createUsage>

/** @param node unique among the processes on the store. @param wall the time of day */
export function createUsage({
  store,
  node,
  clock,
  wall,
  log
}: {
  readonly store: Pick<Store, 'get' | 'set' | 'append' | 'entries'>
  readonly node: string
  readonly clock: Clock
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}) {
  const days = new Map<string, Day>()
  /** The counts of the last call of a route, by the route in the catalog. */
  const known = new WeakMap<object, Counted>()
  let today = ''
  let until = 0
  let writing: Promise<void> = Promise.resolve()

  function dayOf(tenant: string): Day {
    const key = `${tenant}\n${today}`
    const known = days.get(key)
    if (known !== undefined) return known
    const made = { ...noCounts(), tenant, day: today, upstreams: new Map(), tools: new Map() }
    const day = { ...made, isListed: false, isChanged: true }
    days.set(key, day)
    return day
  }

  function countedOf({ tenant, request: { method }, record }: ObservedCall, now: number): Counted {
    if (now >= until) {
      today = dayAt(now)
      until = Date.parse(today) + dayMs
    }
    const route = record?.route
    const last = route && known.get(route)
    if (last?.method === method && last.day.day === today && last.day.tenant === tenant.id) return last
    const day = dayOf(tenant.id)
    if (route === undefined) return { day, method, upstream: undefined, tool: undefined }
    const upstream = partOf(day.upstreams, route.upstream, Infinity)
    const name = method === 'tools/call' ? countedName(route) : undefined
    const tool = name === undefined ? undefined : partOf(day.tools, `${route.upstream}/${name}`, maxToolsCounted)
    const counted = { day, method, upstream, tool }
    known.set(route, counted)
    return counted
  }

  async function write(key: string, day: Day): Promise<void> {
    const { tenant, upstreams, tools, isListed } = day
    day.isChanged = false
    try {
      if (!isListed)
        await store.append(usageIndexKey(tenant, day.day), node, { ttlMs: usageTtlMs, keep: usageProcessesKept })
      day.isListed = true
      const counts = Object.fromEntries(usageCounts.map((name) => [name, day[name]]))
      const parts = { upstreams: Object.fromEntries(upstreams), tools: Object.fromEntries(tools) }
      await store.set(usageKey(tenant, day.day, node), JSON.stringify({ ...counts, ...parts }), { ttlMs: usageTtlMs })
      if (day.day !== today && !day.isChanged) days.delete(key)
    } catch (err) {
      day.isChanged = true
      log.debug({ err, tenant }, 'what a tenant uses cannot be written now')
    }
  }

  async function writeAll(only?: string): Promise<void> {
    for (const [key, day] of days)
      if ((only === undefined || day.tenant === only) && (day.isChanged || day.day !== today)) await write(key, day)
  }
  const written = (only?: string): Promise<void> => (writing = writing.then(() => writeAll(only)))
  const timer = every(clock, writeMs, () => void written())

  async function dayWritten(tenant: string, day: string): Promise<UsageOfDay> {
    const nodes = new Set(await store.entries(usageIndexKey(tenant, day)))
    const sum = { ...noCounts(), day, upstreams: new Map(), tools: new Map() }
    for (const each of nodes) addTo(sum, (await store.get(usageKey(tenant, day, each))) ?? '{}')
    return sum
  }

  return {
    meter: {
      callEnded(call: ObservedCall, { outcome }: CallOutcome, now = wall.now()): void {
        const { day, upstream, tool } = countedOf(call, now)
        const { request, record } = call
        day.isChanged = true
        day.requests++
        if (request.method === 'tools/call') day.toolCalls++
        const failed = isFailure(outcome)
        if (outcome === 'tool_error') day.toolErrors++
        else if (failed) day.errors++
        day.bytesIn += record?.bodyBytes ?? 0
        day.bytesOut += record?.answerBytes ?? 0
        count(upstream, failed)
        count(tool, failed)
      }
    },
    /** @param count of days, with today. @returns the newest first. @throws GatewayError unavailable */
    async read(tenant: string, dayCount: number): Promise<UsageOfDay[]> {
      await written(tenant)
      const now = wall.now()
      const wanted = Array.from({ length: dayCount }, (_, at) => dayAt(now - at * dayMs))
      return await Promise.all(wanted.map((day) => dayWritten(tenant, day)))
    },
    async close(): Promise<void> {
      timer.close()
      await written()
    }
  }
}

/** @returns undefined where there are too many to be told apart */
function partOf(parts: Parts, name: string, max: number): Part | undefined {
  let part = parts.get(name)
  if (part === undefined && parts.size < max) {
    part = { calls: 0, errors: 0 }
    parts.set(name, part)
  }
  return part
}

function count(part: Part | undefined, isError: boolean): void {
  if (part === undefined) return
  part.calls++
  if (isError) part.errors++
}

/** @param text as a process wrote it; what none would have written counts for nothing */
function addTo(sum: Counts & { readonly upstreams: Parts; readonly tools: Parts }, text: string): void {
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) return
  for (const name of usageCounts) sum[name] += numberIn(value, name)
  for (const list of ['upstreams', 'tools'] as const)
    for (const [name, part] of Object.entries(isObject(value[list]) ? value[list] : {})) {
      const known = sum[list].get(name) ?? { calls: 0, errors: 0 }
      sum[list].set(name, known)
      known.calls += isObject(part) ? numberIn(part, 'calls') : 0
      known.errors += isObject(part) ? numberIn(part, 'errors') : 0
    }
}

const numberIn = (value: JsonObject, name: string): number =>
  Number.isSafeInteger(value[name]) ? Number(value[name]) : 0
