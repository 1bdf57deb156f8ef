// Traces, where the configuration wants some: only then is anything of OpenTelemetry's loaded for them.

import type { Snapshot } from '../../config/snapshot.ts'
import type { Traces } from './traces.ts'

export const openTraces = async (
  telemetry: Snapshot['telemetry'],
  own: { readonly version: string; readonly node: string }
): Promise<Traces | undefined> => telemetry && (await import('./traces.ts')).createTraces(telemetry, own)
