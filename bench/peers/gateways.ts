// Several gateways in one process: the same compiled code, the same heap, the same collector, so that what differs
// between them is what they are told to do. Each message is a configuration and where its log goes.

import { openSync } from 'node:fs'
import pino from 'pino'
import { compileConfig } from '../../src/config/load.ts'
import { createGateway } from '../../src/gateway.ts'
import { batched } from '../../src/observe/log.ts'
import { openLines } from '../../src/observe/lines/standard-error.ts'

export interface GatewayOfMany {
  readonly config: string
  readonly logFile: string
}

process.once('disconnect', () => process.exit())
// So that a CPU profile is written.
process.once('SIGTERM', () => process.exit())
process.on('message', ({ config, logFile }: GatewayOfMany) => void start(config, logFile))

async function start(config: string, logFile: string): Promise<void> {
  const snapshot = compileConfig(config, { path: 'bench.json', env: {} })
  const lines = batched(openLines(openSync(logFile, 'a')))
  const log = pino({ level: snapshot.logLevel ?? 'info', base: null }, lines)
  const gateway = await createGateway(snapshot, { log, version: '0', env: process.env })
  const { url } = await gateway.listen()
  process.send?.(url)
}
