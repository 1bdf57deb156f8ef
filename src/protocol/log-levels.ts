// Log levels of MCP: those of RFC 5424 (specification, server/utilities/logging).

export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return (logLevels as readonly unknown[]).includes(value)
}

/**
 * Does a client that asked for `wanted` and above get a message of this level? Messages of unknown levels are always
 * sent.
 */
export function passesLogLevel(level: unknown, wanted: LogLevel | undefined): boolean {
  return wanted === undefined || !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(wanted)
}

export function moreVerboseLevel(a: LogLevel, b: LogLevel): LogLevel {
  return logLevels.indexOf(a) < logLevels.indexOf(b) ? a : b
}
