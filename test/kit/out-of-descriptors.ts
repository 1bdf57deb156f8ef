// `node out-of-descriptors.ts URL JWKS_URL KID AUDIT_FILE`: takes every file descriptor of its process, and then wants
// what needs one: a process of a stdio upstream, a connection to the HTTP upstream at URL, readiness, a key of an issuer,
// a line in a file of the audit log. Then once more with all of them free. Prints what came of it as a line of JSON.

import { closeSync, openSync } from 'node:fs'
import { createFileWriter } from '../../src/audit/file.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import { createKeySource } from '../../src/auth/jwks.ts'
import { createConnections } from '../../src/http/sockets.ts'
import { handshake, httpDefinition, recordingEvents, stdioDefinition, testConnector } from './connector.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'

const [url = '', jwksUri = '', kid = '', auditFile = ''] = process.argv.slice(2)
const { pool, log, logged } = testConnector()
const connections = createConnections(1_000, Infinity, log)

/** Later at each attempt: the key source asks again only after a while. */
let now = Date.now()
const clock = { now: () => (now += 60_000) }
const keys = createKeySource({ issuer: 'https://issuer.test', jwksUri }, { fetch: createFetch(), clock, log })
const writeAudit = createFileWriter(auditFile)

async function outcome(what: Promise<unknown>): Promise<object> {
  return await what.then(
    () => ({ done: true }),
    ({ code }: { code?: string }) => ({ code })
  )
}

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
  const fault = await connections.fault()
  prepare()
  const key = await outcome(keys.key({ alg: 'ES256', kid }))
  prepare()
  return { stdio, http, fault, key, audit: await outcome(writeAudit('{}\n')) }
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
