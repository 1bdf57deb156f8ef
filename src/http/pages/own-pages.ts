// What needs no token and no endpoint: a page for people who come with a browser, and answers for probes.

import type { FastifyInstance } from 'fastify'
import type { Audit } from '../../audit/audit.ts'
import type { StoreHealth } from '../../store/health.ts'
import type { Vault } from '../../vault/vault.ts'
import type { ServerState } from '../admission.ts'
import type { Connections } from '../sockets.ts'
import { sendJson } from '../reply.ts'
import { frontPage, frontPageHeaders } from './front-page.ts'

interface OwnPagesOptions {
  readonly state: ServerState
  readonly storeHealth: StoreHealth
  readonly vault: Pick<Vault, 'sealer'>
  readonly connections: Pick<Connections, 'fault'>
  readonly audit?: Pick<Audit, 'blockedTenants'> | undefined
}

/** Which tenants these are is for administrators: `GET /v1/problems`. */
const blockedText = 'tenants that require their audit records are refused calls: these cannot be written now'
const missingText = 'tenants are not served here: their configuration cannot be used, or not be read, at this process'

export function addOwnPages(
  server: FastifyInstance,
  { state, storeHealth, vault: { sealer }, connections, audit }: OwnPagesOptions
): void {
  /** @returns undefined where requests can be served */
  async function unreadyReason(): Promise<string | undefined> {
    if (state.leaving) return 'stopping'
    const fault = await storeHealth.fault()
    if (fault !== undefined) return fault
    if (!sealer.ready) return 'the key of the store cannot be had'
    return await connections.fault()
  }
  server.get('/', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, frontPageHeaders).end(frontPage)
  })
  const config = { cors: false } as const
  server.get('/health/live', { config }, (_request, reply) => {
    reply.hijack()
    sendJson(reply.raw, 200, { status: 'live' })
  })
  server.get('/health/ready', { config }, async (_request, reply) => {
    reply.hijack()
    const reason = await unreadyReason()
    // The others are served: it stays ready for them.
    const blocked = audit !== undefined && audit.blockedTenants().length > 0
    const notes = {
      ...(blocked && { audit: blockedText }),
      ...(state.snapshot.isWhole === false && { tenants: missingText })
    }
    if (reason === undefined) sendJson(reply.raw, 200, { status: 'ready', ...notes })
    else sendJson(reply.raw, 503, { status: 'not ready', reason }, { 'Retry-After': '1' })
  })
}
