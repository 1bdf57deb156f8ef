// What needs no token and no endpoint: a page for people who come with a browser, and answers for probes.

import type { FastifyInstance } from 'fastify'
import type { StoreHealth } from '../../store/health.ts'
import type { Vault } from '../../vault/vault.ts'
import type { ServerState } from '../admission.ts'
import type { Connections } from '../connections.ts'
import { sendJson } from '../reply.ts'
import { frontPage, frontPageHeaders } from './front-page.ts'

interface OwnPagesOptions {
  readonly state: ServerState
  readonly storeHealth: StoreHealth
  readonly vault: Pick<Vault, 'sealer'>
  readonly connections: Pick<Connections, 'fault'>
}

export function addOwnPages(
  server: FastifyInstance,
  { state, storeHealth, vault: { sealer }, connections }: OwnPagesOptions
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
    if (reason === undefined) sendJson(reply.raw, 200, { status: 'ready' })
    else sendJson(reply.raw, 503, { status: 'not ready', reason }, { 'Retry-After': '1' })
  })
}
