// POSTs of HTTP+SSE that come to another process than the one that holds the stream: this one has let the caller in,
// the other one does the rest.

import { isConfiguredPrincipal } from '../../auth/principal.ts'
import { classifyMessage, type EndpointName, GatewayError, type TenantId } from '../../protocol/messages.ts'
import { quotaKeyOf } from '../../relay/call/call.ts'
import { isLost, ProcessGone } from '../../session/bus/bus-errors.ts'
import { sameOwner } from '../../session/session-record.ts'
import type { RequestContext } from '../admission.ts'
import { requestOverheadBytes } from '../request-memory.ts'
import { noLongerAccepted } from '../revalidation.ts'
import { type CarriedContext, carriedContext, contextOfCarried } from './carried.ts'
import { sessionEnded, type HttpSsePost, type HttpSseSession } from './http-sse-session.ts'
import type { Replicas } from './replicas.ts'

interface ForwardedPost extends CarriedContext {
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  /** Of its credential, which is not sent itself. Epoch ms; null: it does not expire. */
  readonly validUntil: number | null
  /** That of the messages URL. */
  readonly id: string
  readonly body: unknown
}

/**
 * @param entries of this process
 * @param take handles a POST for a stream of this process
 * @returns what sends a POST on, and answers false where its stream would be here
 */
export function forwardHttpSsePosts(
  { bus, homes, sessionBus: { retries } }: Replicas,
  entries: ReadonlyMap<string, HttpSseSession>,
  take: (post: HttpSsePost, id: string, body: unknown, accepted: () => void) => Promise<void>
) {
  bus.serve('http-sse', async (question, { memory }) => {
    const { tenant, endpoint, validUntil, id, body, ...carried } = question as ForwardedPost
    const came = contextOfCarried(carried)
    const { principal } = came
    const place = await homes.contextOf.load(tenant, endpoint, principal)
    if (place === undefined) throw sessionEnded()
    const person = quotaKeyOf(principal)
    memory.require(requestOverheadBytes, 'The request')
    const post: HttpSsePost = {
      ...place,
      ...came,
      person,
      memory,
      hold: () => memory.retain(),
      validUntil: validUntil ?? Infinity,
      // The credential was checked where it came in; what the configuration says of its caller may change.
      async revalidate() {
        const now = homes.contextOf(tenant, endpoint, principal)
        if (now === undefined || !isConfiguredPrincipal(principal, now.tenant.auth)) throw noLongerAccepted()
      }
    }
    await new Promise<void>((resolve, reject) => {
      take(post, id, body, resolve).catch(reject)
    })
    return true
  })

  bus.hear('http-sse', ({ id, endpoint, principal }: Omit<ForwardedPost, 'body'>) => {
    const { session, stream } = entries.get(id) ?? {}
    if (session?.record.endpoint === endpoint && sameOwner(session.record.owner, principal)) stream?.end()
  })

  return async (context: RequestContext, id: string, body: unknown): Promise<boolean> => {
    const holder = /^([0-9a-f]{8})-.{43}$/.exec(id)?.[1]
    if (!bus.shared || holder === undefined || holder === bus.node) return false
    const { tenant, endpoint, principal, validUntil } = context
    const about: Omit<ForwardedPost, 'body'> = {
      ...carriedContext(context),
      tenant: tenant.id,
      endpoint: endpoint.name,
      validUntil: validUntil === Infinity ? null : validUntil,
      id
    }
    const whose = { tenant: tenant.id, caller: quotaKeyOf(principal) }
    const forwarded: ForwardedPost = { ...about, body }
    // The answer to a server request counts once, however often it comes.
    const { kind } = classifyMessage(body)
    const isAnswer = kind === 'response' || kind === 'error'
    try {
      await retries.request(holder, 'http-sse', whose, forwarded, isAnswer)
    } catch (error) {
      // The stream is gone with its process, and ends where that comes back: its client has been told so, or its call
      // would wait for an answer that is not given again.
      if (!(error instanceof ProcessGone || (isAnswer && isLost(error)))) throw error
      void retries.tell(holder, 'http-sse', whose, about)
      throw sessionEnded()
    }
    return true
  }
}

/** What the URL of a POST names. @throws GatewayError invalid_request */
export function httpSseIdOf({ incoming }: RequestContext): string {
  const [id, second] = new URLSearchParams(incoming.url?.split('?')[1] ?? '').getAll('sessionId')
  if (id === undefined || second !== undefined) {
    throw new GatewayError(
      'invalid_request',
      'Messages are posted to the URL that the "endpoint" event of the stream gave, with its sessionId. Open the ' +
        'stream first.'
    )
  }
  return id
}
