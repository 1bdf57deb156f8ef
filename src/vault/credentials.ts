// Creates the credentials that upstreams are sent, as their `auth` says.

import type { FetchFor } from '../egress/fetch.ts'
import type { HttpDefinition, UpstreamDefinition } from '../config/snapshot.ts'
import type { ClientCredentialsAuth, Person, UserAuth } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import type { ConnectPage, UpstreamCredential, UpstreamCredentials } from '../upstream/rpc/credential.ts'
import { GatewayError } from '../protocol/messages.ts'
import { createAssertions } from './signed/assertions.ts'
import type { SigningKeys } from './signed/signing-keys.ts'
import { createClientCredentials } from './oauth/client-credentials.ts'
import type { FirstIssuers } from './oauth/first-issuers.ts'
import { followsCaller } from './caller-definitions.ts'
import type { Grants } from './grants.ts'
import { isPersonal } from './personal-views.ts'
import type { TokenExchanges } from './oauth/token-exchange.ts'
import { accountFetch } from './oauth/account-source.ts'
import { createUserAccount } from './oauth/user-account.ts'
import { createUserSecret } from './user-secret.ts'

interface CredentialsOptions {
  readonly servers: { readonly fetch: FetchFor; readonly firstIssuers: Pick<FirstIssuers, 'of'> }
  readonly grants: Grants
  readonly signing: { readonly keys: SigningKeys; readonly publicUrl: () => string }
  readonly exchanges: Pick<TokenExchanges, 'credentialOf'>
  readonly pages: { of(definition: UpstreamDefinition): ConnectPage }
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

/** Creates the credentials of this process: connections of the same definition share a token. */
export function createCredentials(options: CredentialsOptions) {
  const { servers, grants, pages, signing, clock, wall, log } = options
  const { fetch, firstIssuers } = servers
  const known = new Map<string, UpstreamCredential>()

  function clientCredentials(definition: HttpDefinition, auth: ClientCredentialsAuth): UpstreamCredential {
    const { tenant, url, publicHosts } = definition
    const own = fetch(tenant, [url, auth.issuer, auth.tokenUrl], publicHosts)
    const first = firstIssuers.of(definition, auth)
    return createClientCredentials({ definition, auth, fetch: own, first, wall, log })
  }

  function userAccount(definition: HttpDefinition, person: Person, auth: UserAuth): UpstreamCredential {
    const own = accountFetch(fetch, definition, auth)
    const common = { grants, page: pages.of(definition), clock, wall, log }
    return createUserAccount({ ...common, definition: { ...definition, person }, auth, fetch: own })
  }

  function made(definition: UpstreamDefinition): UpstreamCredential | undefined {
    const { auth, person, caller } = definition
    if (definition.refusal !== undefined) return refusing(definition, definition.refusal)
    if (definition.type !== 'http') return undefined
    if (auth?.type === 'clientCredentials') return clientCredentials(definition, auth)
    if (auth?.type === 'tokenExchange' && caller !== undefined) return options.exchanges.credentialOf(definition)
    if (auth?.type === 'signed' && caller !== undefined)
      return createAssertions({ definition: { ...definition, caller }, auth, ...signing, wall })
    if (auth?.type === 'userSecret' && person !== undefined)
      return createUserSecret({ ...definition, person }, grants, pages.of(definition), log)
    return auth?.type === 'user' && person !== undefined ? userAccount(definition, person, auth) : undefined
  }

  return {
    of(definition: UpstreamDefinition): UpstreamCredential | undefined {
      if (definition.auth === undefined && definition.refusal === undefined) return undefined
      const credential = known.get(definition.hash) ?? made(definition)
      if (credential !== undefined) known.set(definition.hash, credential)
      return credential
    },
    isForNobody: (definition: UpstreamDefinition): boolean =>
      followsCaller(definition) && definition.caller === undefined,
    pageOf: (definition: UpstreamDefinition): ConnectPage | undefined =>
      isPersonal(definition) && definition.person === undefined ? pages.of(definition) : undefined,
    /** Forgets the tokens of definitions that are no longer configured. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of known.keys()) if (!hashes.has(hash)) known.delete(hash)
    }
  } satisfies Omit<UpstreamCredentials, 'used'> & { retain: unknown }
}

/** Makes a credential that refuses every call: the caller lacks a claim that the upstream has to be sent. */
const refusing = ({ name }: UpstreamDefinition, why: string): UpstreamCredential => ({
  lines: () => '',
  secrets: () => [],
  hint: () => `${why}.`,
  ready: () =>
    Promise.reject(
      new GatewayError('upstream_unavailable', `Upstream ${name} was not called: ${why}.`, { data: { upstream: name } })
    ),
  refused: () => Promise.resolve(false)
})
