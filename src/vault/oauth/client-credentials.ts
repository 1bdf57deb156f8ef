// One token for all callers of an upstream, requested with the gateway's own credentials (RFC 6749 section 4.4; RFC
// 7523 for a signed assertion in place of a secret).

import * as oauth from 'oauth4webapi'
import type { Fetch } from '../../egress/fetch.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { ClientCredentialsAuth } from '../../config/auth/upstream-auth.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { UpstreamCredential } from '../../upstream/rpc/credential.ts'
import { authenticationOf, oauthRefusalOf } from './client-authentication.ts'
import {
  discoverAuthorization,
  type FirstIssuer,
  readChallenge,
  scopesBesides,
  serverMetadata,
  type ServerAuthorization
} from './discovery.ts'
import { OtherIssuer } from './first-issuers.ts'
import { createMaskedTokens, isGood, type Tokens, tokensFrom } from './tokens.ts'

/** After a failure, callers get that failure for so many milliseconds, and the server is not asked again. */
const retryMs = 5_000
/** The shortest time between two replacements of a refused token: some servers refuse every token. */
const replaceMs = 10_000

interface ClientCredentialsOptions {
  readonly definition: HttpDefinition
  readonly auth: ClientCredentialsAuth
  readonly fetch: Fetch
  readonly first: FirstIssuer | undefined
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

export function createClientCredentials(options: ClientCredentialsOptions): UpstreamCredential {
  const { definition, auth, fetch, wall, log } = options
  const { name, tenant } = definition
  let held: { readonly tokens: Tokens; readonly since: number } | undefined
  /** How to get tokens of the server; learned from its refusal, or written in the configuration. */
  let source: ServerAuthorization | undefined
  let wanted: readonly string[] = []
  let askedMoreAt = -Infinity
  let pending: Promise<void> | undefined
  let failure: { readonly error: GatewayError; readonly until: number } | undefined
  let lines = ''
  const masked = createMaskedTokens()

  const failed = (err: unknown): GatewayError => {
    const answer = oauthRefusalOf(err)
    log.warn({ err, answer, upstream: name, tenant }, 'no token can be had for an upstream')
    const others =
      err instanceof OtherIssuer ? 'it names another authorization server than before; the log says' : 'see the log'
    const why = answer === undefined ? others : `its authorization server answers ${answer}`
    const error = new GatewayError(
      'upstream_unavailable',
      `Upstream ${name} was not called: the gateway has no token for it (${why}).`,
      { cause: err, data: { upstream: name } }
    )
    failure = { error, until: wall.now() + retryMs }
    return error
  }

  /**
   * @param more further scopes; requested from now on if a token with them was given, since other calls need one too
   */
  async function obtain(more: readonly string[]): Promise<void> {
    try {
      source ??= await sourceOf(options, undefined)
      const { server, resource } = source
      const scopes = [...new Set([...(auth.scopes.length > 0 ? auth.scopes : (source.scopes ?? [])), ...more])]
      const parameters = new URLSearchParams(scopes.length === 0 ? {} : { scope: scopes.join(' ') })
      const indicator = auth.resource ?? resource
      if (indicator !== 'none') parameters.set('resource', indicator)
      const client: oauth.Client = { client_id: auth.clientId }
      const response = await oauth.clientCredentialsGrantRequest(
        server,
        client,
        await authenticationOf(auth, server),
        parameters,
        { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true }
      )
      const answer = await oauth.processClientCredentialsResponse(server, client, response)
      const now = wall.now()
      const tokens = tokensFrom(answer, now)
      held = { tokens, since: now }
      wanted = more
      lines = `authorization: Bearer ${tokens.accessToken}\r\n`
      masked.show(tokens)
      failure = undefined
    } catch (error) {
      throw failed(error)
    }
  }

  /** One request for all callers that wait. */
  function renewed(more: readonly string[], signal: AbortSignal): Promise<void> {
    pending ??= obtain(more).finally(() => {
      pending = undefined
    })
    return abortable(pending, signal)
  }

  return {
    lines: () => lines,
    secrets: masked.secrets,
    hint: () =>
      'it does not take the token that this gateway gets for it: check clientId, scopes and resource of its auth, ' +
      'and what this client may do there.',
    ready(signal) {
      // Where nothing is written, the server says where its tokens come from when it refuses a request without one.
      if (held === undefined && source === undefined && auth.issuer === undefined && auth.tokenUrl === undefined)
        return undefined
      if (held !== undefined && isGood(held.tokens, held.since, wall.now())) return undefined
      if (failure !== undefined && wall.now() < failure.until) return Promise.reject(failure.error)
      return renewed(wanted, signal)
    },
    async refused(refusedLines, { status, challenge }, signal) {
      if (refusedLines !== lines) return true
      const now = wall.now()
      if (held !== undefined && now - held.since < replaceMs && status === 401) return false
      const { resourceMetadata, scopes, error } = await readChallenge(challenge)
      if (status === 403) {
        const isNew = scopesBesides(wanted, scopes).length > wanted.length
        if (error !== 'insufficient_scope' || !isNew) return false
        if (now - askedMoreAt < replaceMs) return false
        askedMoreAt = now
      }
      if (source === undefined) {
        try {
          source = await abortable(sourceOf(options, resourceMetadata), signal)
        } catch (err) {
          throw failed(err)
        }
      }
      await renewed(scopesBesides(wanted, scopes), signal)
      return true
    }
  }
}

async function sourceOf(
  { definition: { url }, auth: { issuer, tokenUrl, resource }, fetch, first }: ClientCredentialsOptions,
  metadataUrl: string | undefined
): Promise<ServerAuthorization> {
  const own = resource ?? url
  // Of an assertion of the client the issuer is the audience (draft-ietf-oauth-rfc7523bis), and where none is known the
  // token endpoint (RFC 7523 section 3): an operator wrote both, so that no other server had a say in it.
  if (tokenUrl !== undefined)
    return { resource: own, server: { issuer: issuer ?? tokenUrl, token_endpoint: tokenUrl }, scopes: undefined }
  if (issuer !== undefined) return { resource: own, server: await serverMetadata(issuer, fetch), scopes: undefined }
  return await discoverAuthorization(url, metadataUrl, undefined, fetch, first)
}
