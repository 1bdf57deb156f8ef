// How calls went for longer than the last hour: asked of the Prometheus that reads the gateway's metrics, over all its
// processes. What is asked is made here; nobody sends expressions through the gateway.

import { createFetch, type Fetch } from '../../egress/fetch.ts'
import type { AdminConfig } from '../../config/snapshot.ts'
import { isFailure } from '../../observe/outcomes.ts'
import { isObject } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import { createPlaces } from '../clients/own-way.ts'
import type { SeriesKind } from './series.ts'

const timeoutMs = 15_000
const maxAnswerBytes = 4 * 1024 * 1024
/** The steps of a plot. */
const wantedSteps = 240
const shortestStepSeconds = 60
/** The most reads at once in one process: each sends several queries. */
const maxReads = 4
const places = createPlaces(maxReads, 'Prometheus is being asked too much at once.')

const metric = 'mcp_server_operation_duration_seconds'
const labels: Readonly<Record<SeriesKind, readonly string[]>> = {
  tenant: ['gatehouse_tenant'],
  endpoint: ['gatehouse_tenant', 'gatehouse_endpoint'],
  upstream: ['gatehouse_tenant', 'gatehouse_upstream'],
  tool: ['gatehouse_tenant', 'gatehouse_upstream', 'gen_ai_tool_name']
}
const quantiles = ['0.5', '0.95', '0.99'] as const
/** They stay open as long as their client likes. */
const openEnded = 'mcp_method_name!="subscriptions/listen"'

type Labels = Readonly<Record<string, string>>
interface Found {
  readonly labels: Labels
  /** The values by step; undefined where there is none. */
  readonly values: ReadonlyMap<number, number>
}

type PrometheusConfig = NonNullable<AdminConfig['prometheus']>

/** Prometheus did not answer, or refused. The message may name its address. */
export class PrometheusAway extends Error {}

export type Prometheus = ReturnType<typeof createPrometheus>

/** @param wall the time of day */
export function createPrometheus(
  wall: Pick<Clock, 'now'>,
  fetch: Fetch = createFetch({ maxBytes: maxAnswerBytes, timeoutMs })
) {
  /** @throws PrometheusAway */
  async function ask(
    { url, headers }: PrometheusConfig,
    path: string,
    query: Record<string, string>
  ): Promise<Found[]> {
    const response = await fetch(`${url.replace(/\/$/, '')}/api/v1/${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(query)
    }).catch((error: unknown) => {
      throw new PrometheusAway(error instanceof Error ? error.message : 'there is no connection.')
    })
    const told: unknown = await response.json().catch(() => undefined)
    const data = isObject(told) && isObject(told['data']) ? told['data'] : undefined
    if (!response.ok || !Array.isArray(data?.['result'])) {
      const said = isObject(told) && typeof told['error'] === 'string' ? told['error'].slice(0, 200) : ''
      throw new PrometheusAway(`it answers ${response.status}. ${said}`)
    }
    return data['result'].filter(isObject).map((each) => ({
      labels: each['metric'] as Labels,
      values: new Map(
        ((each['values'] ?? [each['value']]) as Array<[number, string]>)
          .map(([at, value]) => [Math.round(at), Number(value)] as const)
          .filter(([, value]) => Number.isFinite(value))
      )
    }))
  }

  return {
    /**
     * As `Series.read`, by Prometheus.
     * @param tenants undefined: all
     * @throws PrometheusAway; AdminProblem rate_limited
     */
    async read(
      config: PrometheusConfig,
      who: string,
      { by, hours, top }: { readonly by: SeriesKind; readonly hours: number; readonly top: number },
      tenants: ReadonlySet<string> | undefined
    ) {
      const free = places.take(who)
      try {
        const step = Math.max(shortestStepSeconds, Math.ceil((hours * 3600) / wantedSteps / 60) * 60)
        const steps = Math.floor((hours * 3600) / step)
        const now = wall.now() / 1000
        // The last step goes on, as in the series of a process.
        const end = Math.ceil(now / step) * step
        const times = Array.from({ length: steps }, (_, at) => end - (steps - 1 - at) * step)
        const span = { start: String(times[0] ?? end), end: String(end), step: String(step) }
        const fixed = Object.entries(config.matchers).map(([name, value]) => equal(name, value))
        const own = [openEnded, ...fixed, ...(tenants === undefined ? [] : [oneOf('gatehouse_tenant', tenants)])]
        const names = labels[by]
        const grouped = names.join(', ')
        const all = `${metric}_count${matching([...own, ...present(names)])}`
        const most = await ask(config, 'query', {
          time: String(now),
          query: `topk(${top}, sum by (${grouped}) (increase(${all}[${hours}h])))`
        })
        const chosen = most.map((each) => each.labels)
        const few = [...own, ...names.map((name) => oneOf(name, new Set(chosen.map((each) => each[name] ?? ''))))]
        const range = (query: string): Promise<Found[]> => ask(config, 'query_range', { ...span, query })
        const counts = (by: string, matchers: readonly string[]) =>
          range(`sum by (${by}) (increase(${metric}_count${matching(matchers)}[${step}s]))`)
        const durations = (by: string, matchers: readonly string[]) =>
          Promise.all(
            quantiles.map((part) =>
              range(
                `histogram_quantile(${part}, sum by (${by}) (rate(${metric}_bucket${matching(matchers)}[${step}s])))`
              )
            )
          )
        const nobody = chosen.length === 0
        const [allCounts, allDurations, partCounts, partDurations] = await Promise.all([
          counts('gatehouse_outcome', own),
          durations('le', own),
          nobody ? [] : counts(`${grouped}, gatehouse_outcome`, few),
          nobody ? [] : durations(`${grouped}, le`, few)
        ])
        const told = (counted: readonly Found[], lasted: ReadonlyArray<readonly Found[]>, of: Labels) =>
          stepsOf(
            times,
            counted.filter(isOf(of)),
            lasted.map((found) => found.find(isOf(of)))
          )
        return {
          from: new Date((times[0] ?? end) * 1000).toISOString(),
          stepMs: step * 1000,
          steps,
          total: told(allCounts, allDurations, {}),
          items: chosen.map((of) => ({
            tenant: of['gatehouse_tenant'] ?? '',
            name: (names.length === 1 ? names : names.slice(1)).map((name) => of[name] ?? '').join('/'),
            ...told(partCounts, partDurations, of)
          }))
        }
      } finally {
        free()
      }
    }
  }
}

const isOf =
  (of: Labels) =>
  ({ labels: own }: Found): boolean =>
    Object.entries(of).every(([name, value]) => own[name] === value)

/** A string of PromQL has the escapes of one of JSON. */
const equal = (label: string, value: string): string => `${label}=${JSON.stringify(value)}`

const present = (names: readonly string[]): string[] => names.map((name) => `${name}!=""`)

const matching = (matchers: readonly string[]): string => `{${matchers.join(', ')}}`

/** Writes values as a regular expression of RE2 in a string of PromQL: every character stands for itself. */
const oneOf = (label: string, values: ReadonlySet<string>): string =>
  `${label}=~${JSON.stringify([...values].map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'))}`

function stepsOf(times: readonly number[], counted: readonly Found[], lasted: ReadonlyArray<Found | undefined>) {
  // `increase` is an estimate: of three calls it may make 2.98.
  const sum = (isWanted: (outcome: string) => boolean): number[] =>
    times.map((time) =>
      Math.round(
        counted
          .filter((each) => isWanted(each.labels['gatehouse_outcome'] ?? ''))
          .reduce((all, { values }) => all + (values.get(time) ?? 0), 0)
      )
    )
  const [p50 = [], p95 = [], p99 = []] = quantiles.map((_, at) =>
    times.map((time) => {
      const seconds = lasted[at]?.values.get(time)
      return seconds === undefined ? null : Math.round(seconds * 10_000) / 10
    })
  )
  return {
    calls: sum(() => true),
    errors: sum((outcome) => outcome !== 'tool_error' && isFailure(outcome)),
    toolErrors: sum((outcome) => outcome === 'tool_error'),
    p50,
    p95,
    p99
  }
}
