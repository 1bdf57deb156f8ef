// Connecting an account: the person is sent to the authorization server of the upstream and comes back with a code
// (OAuth 2.1 authorization code with PKCE, RFC 8707, RFC 9207). The state between the two steps is sealed in the store,
// can be used once, and only by the person who began.

import * as oauth from 'oauth4webapi'
import { personKeyOf } from '../../auth/principal.ts'
import type { FetchFor } from '../../egress/fetch.ts'
import type { HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Person, UserAuth } from '../../config/auth/upstream-auth.ts'
import type { Log } from '../../observe/log.ts'
import { grantBegunKey, grantPendingKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { type AccountClient, clientAt, ConnectRefused, forgetClient, redirectUriOf } from './account-client.ts'
import { createGiveBack } from './account-renewal.ts'
import { accountNameOf } from './account-name.ts'
import { accountFetch, accountSourceOf, namedResource, providerOf } from './account-source.ts'
import { authenticationOf, isOfClient } from './client-authentication.ts'
import type { FirstIssuers } from './first-issuers.ts'
import type { Account, Grant } from '../grant.ts'
import { type Grants, newGrantId } from '../grants.ts'
import { grantTargetOf } from '../personal-views.ts'
import type { SealedValues } from '../sealed-values.ts'
import { tokensFrom } from './tokens.ts'

/** The time that a person has for the whole sign-in, in milliseconds. */
const pendingMs = 10 * 60_000

/** The most sign-ins that a person may begin in that time, at all processes together. */
const maxBegun = 30

interface Pending {
  readonly person: string
  readonly upstream: string
  /** The server that the account is for. */
  readonly target: string
  readonly verifier: string
  readonly redirectUri: string
  readonly server: oauth.AuthorizationServer
  readonly client: AccountClient
  readonly resource: string | undefined
  readonly scopes: readonly string[]
}

const insecure = { [oauth.allowInsecureRequests]: true } as const

interface AccountsOptions {
  readonly store: Store
  readonly values: SealedValues
  readonly grants: Grants
  readonly servers: { readonly fetch: FetchFor; readonly firstIssuers: FirstIssuers }
  readonly publicUrl: () => string
  readonly wall: { now(): number }
  readonly log: Log
}

export function createAccounts({ store, values, grants, servers, publicUrl, wall, log }: AccountsOptions) {
  const { fetch, firstIssuers } = servers
  const giveBack = createGiveBack(fetch, log)

  return {
    /**
     * @returns where to send the browser
     * @throws ConnectRefused; Error where a server does not answer or answers wrongly
     */
    async begin(definition: HttpDefinition, auth: UserAuth, person: Person): Promise<string> {
      const { tenant, name } = definition
      // Each sign-in takes room in the store and several requests to servers, so their number is limited.
      if ((await store.count(grantBegunKey(tenant, person.issuer, person.subject), 1, pendingMs)) > maxBegun)
        throw new ConnectRefused(`You have begun ${maxBegun} connections in ten minutes. Wait some, and begin again.`)
      const own = accountFetch(fetch, definition, auth)
      const { server, ...source } = await accountSourceOf(definition, auth, own, firstIssuers.of(definition, auth))
      const before = await grants.get(person, name)
      const provider = providerOf(auth)
      const resource = namedResource(auth, source.resource)
      const registration = { tenant, auth, server, values, fetch: own, publicUrl: publicUrl(), wall, log }
      // No probe if there is an account: its renewal shows whether the server still knows the client.
      const client = await clientAt(registration, before?.account === undefined ? { resource } : undefined)
      const offline = server.scopes_supported?.includes('offline_access') === true ? ['offline_access'] : []
      const asked = auth.scopes.length > 0 ? auth.scopes : (source.scopes ?? [])
      const always = provider?.alwaysAsked ?? []
      const scopes = [...new Set([...asked, ...always, ...(before?.account?.scopes ?? []), ...(before?.missing ?? [])])]
      const wanted = scopes.length === 0 ? [] : [...new Set([...scopes, ...offline])]
      const pending: Pending = {
        person: personKeyOf(person),
        upstream: name,
        target: grantTargetOf(definition),
        verifier: oauth.generateRandomCodeVerifier(),
        redirectUri: redirectUriOf(publicUrl(), tenant),
        server: usedOf(server),
        client,
        resource,
        scopes: wanted
      }
      const state = oauth.generateRandomState()
      await values.write(tenant, grantPendingKey(tenant, state), pending, { ttlMs: pendingMs })
      const url = new URL(server.authorization_endpoint ?? '')
      const parameters = {
        ...provider?.parameters,
        client_id: client.id,
        response_type: 'code',
        redirect_uri: pending.redirectUri,
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
        ...(wanted.length > 0 && {
          [provider?.scopeParameter ?? 'scope']: wanted.join(provider?.scopeSeparator ?? ' ')
        }),
        ...(pending.resource !== undefined && { resource: pending.resource }),
        // OpenID Connect Core section 11: without `consent` many servers give no refresh token a second time.
        ...(wanted.includes('offline_access') && { prompt: 'consent' })
      }
      for (const [member, value] of Object.entries(parameters)) url.searchParams.set(member, value)
      return url.href
    },

    /**
     * Handles the redirect back from the authorization server.
     * @param definitionOf returns the configured definition of an upstream
     * @returns the upstream that is connected now
     * @throws ConnectRefused; Error if the server does not answer, or the response is invalid
     */
    async finish(
      query: URLSearchParams,
      person: Person,
      definitionOf: (upstream: string) => HttpDefinition | undefined
    ): Promise<string> {
      const { tenant } = person
      const state = query.get('state') ?? ''
      const key = grantPendingKey(tenant, state)
      const pending = (await values.read(tenant, key)) as Pending | undefined
      // The state is used once: only one process can delete it.
      if (pending === undefined || !(await store.delete(key)))
        throw new ConnectRefused('This connection was begun too long ago, or is finished already. Begin it again.')
      if (pending.person !== personKeyOf(person))
        throw new ConnectRefused('This connection was begun by somebody else. Nothing was connected.')
      const { server, client, upstream, target, redirectUri, verifier, resource, scopes } = pending
      const [definition, auth] = stillFor(pending, definitionOf(upstream))
      const own = accountFetch(fetch, definition, auth)
      const as: oauth.Client = { client_id: client.id }
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        as,
        await authenticationOf({ clientSecret: client.secret }, server, client.method),
        allowed(server, as, query, state),
        redirectUri,
        verifier,
        {
          ...insecure,
          [oauth.customFetch]: own,
          ...(resource !== undefined && { additionalParameters: { resource } })
        }
      )
      const now = wall.now()
      const answer = await oauth
        .processAuthorizationCodeResponse(server, as, response)
        .catch(async (error: unknown) => {
          const isOwn = client.id !== auth.clientId
          const isLost = isOwn && isOfClient(error) && (await forgetClient(values, tenant, server.issuer, client.id))
          if (!isLost) throw error
          throw new ConnectRefused(`${server.issuer} did not know this gateway any more. Begin again.`)
        })
      const tokens = tokensFrom(answer, now)
      const given = tokens.scopes ?? scopes
      const account: Account = {
        tokens,
        since: now,
        issuer: server.issuer,
        tokenEndpoint: server.token_endpoint ?? '',
        revocationEndpoint: server.revocation_endpoint,
        authMethods: server.token_endpoint_auth_methods_supported,
        clientId: client.id,
        // The secret of a configured client is not stored.
        clientSecret: auth.clientId === undefined ? client.secret : undefined,
        clientMethod: client.method,
        resource,
        scopes: given,
        asked: scopes
      }
      const id = newGrantId()
      await grants.put(person, upstream, { id, target, account }, now)
      // The account is connected by now, also if its name cannot be read.
      const name = await accountNameOf({ auth, server, answer, scopes: given, fetch: own }).catch((err: unknown) =>
        log.info({ err, upstream, tenant }, 'a provider does not say what an account is called')
      )
      if (typeof name === 'string') await grants.change(person, upstream, named(id, name))
      return upstream
    },

    /** Revokes the tokens of the account if the grant can be decrypted, and removes the grant in any case. */
    async disconnect(definition: UpstreamDefinition, person: Person): Promise<void> {
      const grant = await grants.raw(person, definition.name)
      await grants.remove(person, definition.name)
      if (grant?.account !== undefined) await giveBack(definition, { person, upstream: definition.name }, grant.account)
    },
    giveBack
  }
}

/** Writes the name of the account, unless its tokens were renewed meanwhile or another account was connected. */
const named =
  (id: string, name: string) =>
  (now: Grant): Grant | undefined =>
    now.id === id && now.account !== undefined ? { ...now, account: { ...now.account, name } } : undefined

/**
 * @throws ConnectRefused if the upstream takes no accounts any more, or is another server than when the person began
 */
function stillFor(
  { upstream, target }: Pending,
  definition: HttpDefinition | undefined
): [definition: HttpDefinition, auth: UserAuth] {
  if (definition?.auth?.type !== 'user')
    throw new ConnectRefused(`${upstream} takes no accounts any more. Nothing was connected.`)
  if (target !== grantTargetOf(definition))
    throw new ConnectRefused(`${upstream} is at another place now. Nothing was connected: begin again.`)
  return [definition, definition.auth]
}

/** Keeps only the metadata that later requests need: the rest may be long. */
function usedOf(server: oauth.AuthorizationServer): oauth.AuthorizationServer {
  const { issuer, token_endpoint: token, revocation_endpoint: revocation, userinfo_endpoint: userinfo } = server
  const algorithms = server.id_token_signing_alg_values_supported
  const methods = server.token_endpoint_auth_methods_supported?.filter((each) => each.startsWith('client_secret_'))
  const namesItself = server.authorization_response_iss_parameter_supported
  return {
    issuer,
    ...(token !== undefined && { token_endpoint: token }),
    ...(revocation !== undefined && { revocation_endpoint: revocation }),
    ...(userinfo !== undefined && { userinfo_endpoint: userinfo }),
    ...(Array.isArray(algorithms) && { id_token_signing_alg_values_supported: algorithms.slice(0, 16) }),
    ...(methods !== undefined && { token_endpoint_auth_methods_supported: methods.slice(0, 2) }),
    ...(namesItself !== undefined && { authorization_response_iss_parameter_supported: namesItself })
  }
}

/** @throws ConnectRefused if the person or the server refused; Error if the response is not one of this server */
function allowed(server: oauth.AuthorizationServer, client: oauth.Client, query: URLSearchParams, state: string) {
  try {
    return oauth.validateAuthResponse(server, client, query, state)
  } catch (error) {
    // The error is believed only after `iss` was checked (RFC 9207).
    if (error instanceof oauth.AuthorizationResponseError)
      throw new ConnectRefused(`${server.issuer} answered ${error.error.slice(0, 100)}. Nothing was connected.`)
    throw error
  }
}
