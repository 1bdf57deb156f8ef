// Where and how the exporters of OpenTelemetry send: over the connections of the gateway's own egress.

import { agentTo } from '../../egress/requests.ts'
import type { LogsPlace } from './send-logs.ts'

export const exporterTo = ({ url, headers }: LogsPlace, timeoutMillis: number) => ({
  url,
  headers: { ...headers },
  timeoutMillis,
  httpAgentOptions: () => agentTo(new URL(url))
})
