// Traces, where the configuration wants some: only then is anything of OpenTelemetry's loaded for them.

import type { TelemetryConfig } from '../../config/snapshot.ts'
import type { Traces } from './traces.ts'

export const openTraces = async (
  telemetry: TelemetryConfig | undefined,
  own: { readonly version: string; readonly node: string }
): Promise<Traces | undefined> => telemetry && (await import('./traces.ts')).createTraces(telemetry, own)
