// Which histogram a call belongs to, found without its attributes where the call before it ended alike: making them and
// joining them cost more than counting.

import type { CallOutcome, ObservedCall } from '../calls.ts'
import type { createCallAttributes, MeteredUpstream, UpstreamRequest } from './call-attributes.ts'
import type { createCallSeries, Histogram } from './call-series.ts'

/** Of one definition; beyond, they are found again. */
const maxTools = 400

type CallSeries = ReturnType<typeof createCallSeries>
type CallAttributes = ReturnType<typeof createCallAttributes>

/** Of calls of a client, by the route in the catalog: what it had last, and all that its attributes depend on. */
export function createServedSeries({ find }: Pick<CallSeries, 'find'>, { ofServed }: Pick<CallAttributes, 'ofServed'>) {
  const known = new WeakMap<
    object,
    Readonly<Record<'tenant' | 'endpoint' | 'method' | 'outcome', string>> & {
      readonly revision: string | undefined
      readonly series: Histogram
    }
  >()
  return (call: ObservedCall, ended: CallOutcome): Histogram => {
    const { request, tenant, endpoint, record } = call
    const route = record?.route
    const revision = record?.revision
    // Codes are many.
    if (route === undefined || ended.code !== undefined) return find(tenant.id, ofServed(call, ended))
    const last = known.get(route)
    if (
      last !== undefined &&
      !last.series.isGone &&
      last.tenant === tenant.id &&
      last.endpoint === endpoint.name &&
      last.method === request.method &&
      last.outcome === ended.outcome &&
      last.revision === revision
    )
      return last.series
    const series = find(tenant.id, ofServed(call, ended))
    // Its name may get a place later.
    if (Object.values(series.attributes).includes('other')) return series
    const { method } = request
    known.set(route, { tenant: tenant.id, endpoint: endpoint.name, method, outcome: ended.outcome, revision, series })
    return series
  }
}

type Tools = Map<string, { readonly revision: string; readonly series: Histogram }>

/** Of tool calls that an upstream answered with a result, by its definition and the tool. */
export function createSentSeries({ find }: Pick<CallSeries, 'find'>, { ofSent }: Pick<CallAttributes, 'ofSent'>) {
  const known = new WeakMap<object, Tools>()
  /** @returns which histogram a request to this upstream belongs to */
  return (definition: MeteredUpstream): ((request: UpstreamRequest) => Histogram) => {
    const tools: Tools = known.get(definition) ?? new Map()
    known.set(definition, tools)
    return (request) => {
      const { revision, method, name, error, isToolError } = request
      const isUsual = method === 'tools/call' && error === undefined && !isToolError && typeof name === 'string'
      const found = isUsual ? tools.get(name) : undefined
      if (found?.revision === revision && !found.series.isGone) return found.series
      const attributes = ofSent(definition, request)
      const series = find(definition.tenant, attributes)
      if (!isUsual || attributes['gen_ai.tool.name'] !== name) return series
      // Some are of series that have made room.
      if (tools.size >= maxTools) tools.clear()
      tools.set(name, { revision, series })
      return series
    }
  }
}
