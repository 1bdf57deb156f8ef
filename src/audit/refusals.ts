// Which refused requests of a tenant are recorded: as many that nobody misses one that matters, and so few that nobody
// fills the audit log with them. Those that are left out are counted, for each caller.

import { createTokenBucket } from '../limits/limits.ts'
import type { JsonObject } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'

/** Records of refused requests of one source: so many a second, and so many at once. */
const refusalsPerSecond = 0.1
const refusalsAtOnce = 50
/** Callers of a tenant that are sources of their own. Those beyond count with all who were not let in. */
const maxSources = 100

interface Source {
  readonly bucket: ReturnType<typeof createTokenBucket>
  /** As in its records. */
  readonly caller: JsonObject
  /** Since the last record. */
  unrecorded: number
  usedAt: number
}

export type Refusals = ReturnType<typeof createRefusals>

/** Who was let in is a source; all others are one, because an address may be that of a proxy. */
export function createRefusals(clock: Clock) {
  const sources = new Map<string, Source>()

  function sourceOf(caller: JsonObject): Source {
    const name = JSON.stringify(caller)
    const known = sources.get(name)
    if (known !== undefined) return known
    if (sources.size >= maxSources && Object.keys(caller).length > 0) return sourceOf({})
    const bucket = createTokenBucket(clock, refusalsPerSecond, refusalsAtOnce)
    const source = { bucket, caller, unrecorded: 0, usedAt: 0 }
    sources.set(name, source)
    return source
  }

  return {
    /**
     * @param caller members of a record; none: nobody was let in
     * @returns how many of its source were left out since the last record; undefined: this one is left out, too
     */
    take(caller: JsonObject): number | undefined {
      const source = sourceOf(caller)
      source.usedAt = clock.now()
      if (!source.bucket.take()) return void source.unrecorded++
      const { unrecorded } = source
      source.unrecorded = 0
      return unrecorded
    },
    /** @returns the members of a record for each source of which some were left out since its last record */
    takeUnrecorded(): JsonObject[] {
      const fullAgain = clock.now() - (refusalsAtOnce / refusalsPerSecond) * 1000
      const left: JsonObject[] = []
      for (const [name, source] of sources) {
        const { caller, unrecorded } = source
        if (unrecorded > 0) left.push({ ...caller, unrecorded })
        else if (source.usedAt < fullAgain) sources.delete(name)
        source.unrecorded = 0
      }
      return left
    }
  }
}
