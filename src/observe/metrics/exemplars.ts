// Which series of a metric keep the trace of the last call in each of their buckets: so many of each tenant, and of
// all.

/** Of each metric: with all buckets full these take a few MiB. */
const maxSeriesWithExemplars = 1_000
/** Beyond, the other series of a tenant keep none. */
const maxWithExemplarsOfTenant = 100

/** A call whose duration is in a bucket, by its trace (OpenMetrics 1.0, "Exemplars"). */
export interface Exemplar {
  readonly traceId: string
  readonly spanId: string
  readonly seconds: number
  /** The time of day. */
  readonly at: number
}

interface Holder {
  /** The last one of each bucket; undefined: of none. */
  exemplars: Array<Exemplar | undefined> | undefined
  readonly tenant: string
}

/** @param buckets of each series */
export function createExemplarPlaces(buckets: number) {
  /** Of each tenant, those that have had them for the longest time first. */
  const withExemplars = new Map<string, Holder[]>()
  let places = maxSeriesWithExemplars

  /** Where all places are taken, whoever has most of them gives one to whoever has fewer. */
  function hasPlace({ tenant }: Holder): boolean {
    const own = withExemplars.get(tenant)?.length ?? 0
    if (own >= maxWithExemplarsOfTenant) return false
    if (places > 0) return places-- > 0
    const most = [...withExemplars.values()].reduce((a, b) => (b.length > a.length ? b : a))
    if (most.length <= own + 1) return false
    const oldest = most.shift()
    if (oldest !== undefined) oldest.exemplars = undefined
    return true
  }

  return {
    /** @returns undefined where there is none for this one */
    taken(series: Holder): Holder['exemplars'] {
      if (!hasPlace(series)) return undefined
      const own = withExemplars.get(series.tenant) ?? []
      withExemplars.set(series.tenant, own)
      own.push(series)
      return Array<Exemplar | undefined>(buckets).fill(undefined)
    },
    /** The series is no more. */
    free({ tenant, exemplars }: Holder): void {
      const others = withExemplars.get(tenant)?.filter((each) => each.exemplars !== exemplars)
      if (exemplars === undefined || others === undefined) return
      if (others.length > 0) withExemplars.set(tenant, others)
      else withExemplars.delete(tenant)
      places++
    }
  }
}
