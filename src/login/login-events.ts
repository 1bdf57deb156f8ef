// What happens at the login front of one tenant, told to the audit log; who is let in, and what is refused, to the log,
// too.

import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { errors as Errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { AuditedLogin, LoginEvent, LoginOrigin } from '../observe/login-event.ts'
import { firstOf } from '../protocol/own-text.ts'

/** The longest text that clients and providers choose, in characters. */
const maxEventChars = 500

export interface LoginAuditor {
  login(tenant: string, event: AuditedLogin): void
}

export interface LoginListeners {
  readonly audit: LoginAuditor | undefined
  readonly log: Log
  /** Returns the name of a person for the log. */
  readonly nameOf: (tenant: string, subject: string) => string
}

export type LoginEvents = ReturnType<typeof createLoginEvents>

/** @param origins of requests under way */
export function createLoginEvents(
  tenant: Pick<Tenant, 'id'>,
  { issuer }: Pick<LoginConfig, 'issuer'>,
  { audit, log, nameOf }: LoginListeners,
  origins: WeakMap<IncomingMessage, LoginOrigin>
) {
  const cut = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : firstOf(text, maxEventChars)
  function writeAllowed({ action, subject }: LoginEvent, allowed: string | undefined): void {
    const shown = { tenant: tenant.id, subject: subject && nameOf(tenant.id, subject) }
    if (action === 'sign-in') log.info(shown, 'signed in')
    if (action === 'consent') log.info({ ...shown, client: allowed }, 'a client was allowed to act for a person')
  }

  return (request: IncomingMessage, { refused, client, redirectUri, resource, ...event }: LoginEvent): void => {
    const { address, requestId } = origins.get(request) ?? { address: undefined, requestId: '' }
    const chosen = {
      refused: cut(refused),
      client: cut(client),
      redirectUri: cut(redirectUri),
      resource: cut(resource)
    }
    if (refused === undefined) writeAllowed(event, chosen.client)
    else {
      const { action, subject } = event
      const who = { client: chosen.client, subject: subject && nameOf(tenant.id, subject), address, requestId }
      // Not above: strangers are refused as often as they like.
      log.debug({ tenant: tenant.id, action, ...who, reason: chosen.refused }, 'the login front refused')
    }
    audit?.login(tenant.id, { ...event, ...chosen, issuer, address, requestId })
  }
}

/**
 * Notes the requests that the library refuses, and the grants that it ends by itself, as when a refresh token is used
 * twice.
 */
export function noteRefusals(provider: Provider, note: LoginEvents): void {
  const reasonOf = ({ error, error_detail: detail }: Errors.OIDCProviderError): string =>
    detail === undefined ? error : `${error} (${detail})`
  const whoseOf = ({ oidc: { client, entities } }: KoaContextWithOIDC) => {
    const { RefreshToken: token, AuthorizationCode: code, Grant: grant, Session: session } = entities
    const subject = token?.accountId ?? code?.accountId ?? grant?.accountId ?? session?.accountId
    return { client: client?.clientId, subject }
  }
  provider.on('grant.error', (ctx, error) =>
    note(ctx.req, { action: 'token', ...whoseOf(ctx), refused: reasonOf(error) })
  )
  provider.on('authorization.error', (ctx, error) => {
    // What a person or the tenant's provider said no to was noted there.
    const { result } = (ctx.oidc.entities.Interaction ?? {}) as { result?: { error?: string } }
    if (result?.error === undefined)
      note(ctx.req, { action: 'authorization', ...whoseOf(ctx), refused: reasonOf(error) })
  })
  provider.on('grant.revoked', (ctx) => note(ctx.req, { action: 'grant-ended', ...whoseOf(ctx) }))
}

/** Logs what fails in the library; a client that breaks a request off is no fault. */
export function logFailures(provider: Provider, tenant: string, log: Log): void {
  provider.on('server_error', (_ctx, error: Error) => log.error({ tenant, err: error }, 'the login front failed'))
  // Otherwise it writes a stack to standard error for everybody who breaks a request off.
  const events: EventEmitter = provider
  events.on('error', (err: Error, ctx?: KoaContextWithOIDC) => {
    const isBrokenOff = ctx !== undefined && (!ctx.req.complete || ctx.req.destroyed)
    log[isBrokenOff ? 'debug' : 'error']({ tenant, err }, 'a request to the login front came to no end')
  })
}
