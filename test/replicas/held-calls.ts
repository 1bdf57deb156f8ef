// Calls of sessions at a server over HTTP that tells what it executed, and in which of its sessions.

import { canaryServer, type CanaryServer } from '../kit/canary-server.ts'
import type { Answer, LegacyClient } from '../kit/client.ts'
import { post } from '../kit/server-request.ts'
import { until, type Teardown } from '../kit/until.ts'

export interface Canaries extends CanaryServer {
  /** For `startReplicas`. */
  readonly behind: { readonly upstreams: Record<string, unknown>; readonly endpoints: Record<string, unknown> }
  /** The upstream session of a call. */
  sessionOf(canary: string): string | undefined
}

export async function canaries(t: Teardown): Promise<Canaries> {
  const web = await canaryServer(t)
  return {
    ...web,
    behind: {
      upstreams: { web: { type: 'http', url: web.url } },
      endpoints: { default: { upstreams: ['web'], prefix: '' } }
    },
    sessionOf: (canary) => [...web.bySession].find(([, all]) => all.has(canary))?.[0]
  }
}

/** A call that is answered with its canary at once. */
export const mirror = (url: string, client: LegacyClient, canary: string, more: object = {}): Promise<Answer> =>
  post(url, client, { id: canary, method: 'tools/call', params: { name: 'mirror', arguments: { canary, ...more } } })

export const mirrored = (canary: string) => ({ status: 200, json: { result: { content: [{ text: canary }] } } })

let tries = 0

/**
 * A replica that has been away hears the others a moment after it is ready: until then it refuses what belongs to them.
 * @returns the canary of the call that was answered
 */
export const untilMirrored = (url: string, client: LegacyClient): Promise<string> =>
  until('a call is answered', async () => {
    const canary = `try ${++tries}`
    const { json } = await mirror(url, client, canary)
    return json?.result?.content[0].text === canary ? canary : undefined
  })
