// `node out-of-descriptors.ts URL`: takes every file descriptor of its process, and then wants what needs one: a process
// of a stdio upstream, a connection to the HTTP upstream at URL, readiness. Then once more with all of them free. Prints
// what came of it as a line of JSON.

import { closeSync, openSync } from 'node:fs'
import { createConnections } from '../../src/http/connections.ts'
import { handshake, httpDefinition, recordingEvents, stdioDefinition, testConnector } from './connector.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'

const [url = ''] = process.argv.slice(2)
const { pool, log, logged } = testConnector()
const connections = createConnections(1_000, Infinity, log)

async function attempt(definition: UpstreamDefinition): Promise<object> {
  try {
    await pool.acquire(definition, 'scope', handshake, recordingEvents())
    return { connected: true }
  } catch (error) {
    const { code, message, data } = error as { code?: string; message?: string; data?: object }
    return { code, message, data }
  }
}

/** @param prepare is called before each */
async function attempts(prepare: () => void): Promise<object> {
  prepare()
  const stdio = await attempt(stdioDefinition())
  prepare()
  const http = await attempt(httpDefinition(url, { era: 'legacy' }))
  prepare()
  return { stdio, http, fault: await connections.fault() }
}

const held: number[] = []
function takeAll(): void {
  try {
    for (;;) held.push(openSync('/dev/null', 'r'))
  } catch {
    // None is left.
  }
}
const without = await attempts(takeAll)
for (const descriptor of held) closeSync(descriptor)
const again = await attempts(() => {})
const messages = logged.map(({ msg }) => msg).filter((msg) => msg.includes('file descriptor'))
process.stdout.write(`${JSON.stringify({ without, again, messages })}\n`, () => process.exit())
