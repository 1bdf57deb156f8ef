// How often something happened, by its reason and the tenant. Own code in place of OpenTelemetry's counter, which keeps
// the series of a tenant for ever.

import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics'
import { maxSeries, timeOf } from './call-series.ts'
import { instruments, type MetricName } from './instruments.ts'

interface Count {
  value: number
  readonly startTime: HrTime
  readonly attributes: Attributes
}

/** @param wall the time of day */
export function createTenantCounts(name: MetricName, wall: { now(): number }) {
  /** By tenant, '' for none, and reason. */
  const tenants = new Map<string, Map<string, Count>>()
  let size = 0
  let overflow: Count | undefined

  const made = (attributes: Attributes): Count => ({ value: 0, startTime: timeOf(wall), attributes })

  function countOf(reason: string, tenant: string | undefined): Count {
    const known = tenants.get(tenant ?? '') ?? new Map<string, Count>()
    const found = known.get(reason)
    if (found !== undefined) return found
    if (size >= maxSeries - 1) return (overflow ??= made({ 'otel.metric.overflow': true }))
    const attributes = { 'gatehouse.reason': reason, ...(tenant !== undefined && { 'gatehouse.tenant': tenant }) }
    const count = made(attributes)
    tenants.set(tenant ?? '', known.set(reason, count))
    size++
    return count
  }

  return {
    /** @param reason one of a closed table */
    add(reason: string, tenant: string | undefined): void {
      countOf(reason, tenant).value++
    },
    /** Removes those of tenants that are no more. @param there the ids of those that are */
    keepOnly(there: { has(tenant: string): boolean }): void {
      for (const [tenant, known] of tenants) {
        if (tenant === '' || there.has(tenant)) continue
        size -= known.size
        tenants.delete(tenant)
      }
    },
    /** As OpenTelemetry has it; a copy of what there is now. */
    data(): MetricData {
      const { unit, description } = instruments[name]
      const endTime = timeOf(wall)
      const counts = [...tenants.values()].flatMap((known) => [...known.values()])
      return {
        descriptor: { name, unit, description, valueType: ValueType.DOUBLE },
        dataPointType: DataPointType.SUM,
        isMonotonic: true,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPoints: [...counts, ...(overflow ? [overflow] : [])].map(({ value, startTime, attributes }) => ({
          ...{ value, startTime, attributes },
          endTime
        }))
      }
    }
  }
}
