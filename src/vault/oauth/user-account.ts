// The credential for the account of one person at one upstream: its access token is sent to the server, and refreshed
// before it expires, by one process for all. A token is stored before it is used.

import type { Fetch } from '../../egress/fetch.ts'
import { personKeyOf } from '../../auth/principal.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { Person, UserAuth } from '../../config/auth/upstream-auth.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, RpcError } from '../../protocol/messages.ts'
import { abortable, type Clock, pause } from '../../time/clock.ts'
import { type ConnectPage, ConnectRequiredError, type UpstreamCredential } from '../../upstream/rpc/credential.ts'
import { createAccountGrant } from './account-grant.ts'
import { isOfClient, oauthRefusalOf } from './client-authentication.ts'
import { renewedAccount } from './account-renewal.ts'
import { discoverAuthorization, readChallenge } from './discovery.ts'
import type { Account } from '../grant.ts'
import { type Grants, renewalMs } from '../grants.ts'
import type { Release } from '../lock.ts'
import { createMaskedTokens, isGood } from './tokens.ts'

interface UserAccountOptions {
  readonly definition: HttpDefinition & { readonly person: Person }
  readonly auth: UserAuth
  readonly grants: Grants
  readonly fetch: Fetch
  readonly page: ConnectPage
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

const pollMs = 100
/** The shortest time between two refreshes of a refused token: some servers refuse every token. */
const replaceMs = 10_000
/** After a failure the provider is not asked again for so many milliseconds. */
const retryMs = 5_000

export function createUserAccount(options: UserAccountOptions): UpstreamCredential {
  const { definition, auth, grants, fetch, page, clock, wall, log } = options
  const { name, tenant, person } = definition
  const grantId = definition.hash.split('.')[1]
  const personKey = personKeyOf(person)
  const own = createAccountGrant({ definition, auth, grantId, grants, fetch, connectAgain, log })
  let pending: Promise<void> | undefined
  let failure: { readonly error: GatewayError; readonly until: number } | undefined
  const masked = createMaskedTokens()

  /** Returns the account as this process read it last, with its current tokens. */
  function account(): Account | undefined {
    const grant = grants.last(personKey)?.get(name)
    const now = grant?.id === grantId && grant?.dead === undefined ? grant?.account : undefined
    if (now !== undefined) masked.show(now.tokens)
    return now
  }

  /** Makes the error that sends the person to the connect page. */
  function connectAgain(why: string): ConnectRequiredError {
    const { url } = page(personKey)
    return new ConnectRequiredError(`Your account of ${name} has to be connected again: ${why}. Open ${url}`, url)
  }

  /**
   * Waits for another process that refreshes the token.
   * @returns the function that releases the lock, if the other process ended without writing new tokens
   */
  async function awaitOther(before: Account): Promise<Release | undefined> {
    for (let waited = 0; waited < renewalMs + 10 * pollMs; waited += pollMs) {
      await pause(clock, pollMs)
      const release = await grants.tryLockRenewal(person, name)
      if (release !== undefined) return release
      const grant = await own.get()
      if (grant === undefined || !own.isStill(grant, before)) {
        await own.takeOver()
        return undefined
      }
    }
    throw failed(new Error('another process renews it and does not come to an end'))
  }

  function failed(err: unknown): GatewayError {
    log.warn({ err, answer: oauthRefusalOf(err), upstream: name, tenant }, 'the token of an account cannot be renewed')
    const error = new GatewayError(
      'upstream_unavailable',
      `Upstream ${name} was not called: the token of your account there could not be renewed. Try again in a moment.`,
      { cause: err, data: { upstream: name } }
    )
    failure = { error, until: wall.now() + retryMs }
    return error
  }

  async function renew(before: Account, challenge: string | undefined): Promise<void> {
    // First of all: the provider must not be asked with tokens that these replace.
    if (await own.keepUnsaved()) return
    if (challenge !== undefined && (await isElsewhere(options, before, challenge)))
      await own.giveUp(before, 'the upstream uses another provider now')
    const release = (await grants.tryLockRenewal(person, name)) ?? (await awaitOther(before))
    if (release === undefined) return
    try {
      // Read again: it may have been refreshed meanwhile, and a refresh token can be used once.
      const grant = await own.get()
      if (grant?.account === undefined || !own.isStill(grant, before)) return await own.takeOver()
      const next = await renewedOrLost(grant.account)
      if (next === undefined) return await own.giveUp(before, 'its provider does not accept it any more')
      await own.keep(before, next)
      failure = undefined
    } finally {
      await release()
    }
  }

  /** @throws ConnectRequiredError if the provider no longer knows the client; the next connect registers another */
  async function renewedOrLost(before: Account): Promise<Account | undefined> {
    try {
      return await renewedAccount(before, auth, fetch, wall)
    } catch (error) {
      // A configured client is for the operator to correct.
      const isOwn = before.clientId !== auth.clientId
      if (!isOwn || !isOfClient(error) || !(await grants.forgetClient(tenant, before))) throw error
      log.warn(
        { upstream: name, tenant, answer: oauthRefusalOf(error) },
        'a provider does not know the gateway any more'
      )
      await own.giveUp(before, 'its provider does not know this gateway any more')
      throw error
    }
  }

  /** @param challenge of the refusal, if there was one */
  function renewOnce(before: Account, signal: AbortSignal, challenge?: string): Promise<void> {
    if (failure !== undefined && wall.now() < failure.until) return Promise.reject(failure.error)
    pending ??= renew(before, challenge)
      .catch((error: unknown) => {
        throw error instanceof RpcError || error instanceof GatewayError ? error : failed(error)
      })
      .finally(() => {
        pending = undefined
      })
    return abortable(pending, signal)
  }

  return {
    lines() {
      const tokens = account()?.tokens
      return tokens === undefined ? '' : `authorization: Bearer ${tokens.accessToken}\r\n`
    },
    secrets() {
      account()
      return masked.secrets()
    },
    hint: () => `it does not let your account do this. Another one you can connect at ${page(personKey).url}`,
    ready(signal) {
      const now = account()
      if (now === undefined) return Promise.reject(connectAgain('it was disconnected'))
      return isGood(now.tokens, now.since, wall.now()) ? undefined : renewOnce(now, signal)
    },
    async refused(lines, { status, challenge }, signal) {
      const now = account()
      if (now === undefined) throw connectAgain('it was disconnected')
      if (lines !== `authorization: Bearer ${now.tokens.accessToken}\r\n`) return true
      if (status === 403) {
        const { error, scopes } = await readChallenge(challenge)
        // Scopes that were requested before and not granted are not requested again.
        const isNew = scopes?.some((scope) => !now.scopes.includes(scope) && !now.asked?.includes(scope)) === true
        if (error !== 'insufficient_scope' || !isNew) return false
        await own.lacks(scopes ?? [])
        throw connectAgain(`it lacks a permission (${(scopes ?? []).join(' ') || 'which one is not said'})`)
      }
      if (now.renewedAt !== undefined && wall.now() - now.renewedAt < replaceMs) return false
      await renewOnce(now, signal, challenge ?? '')
      return true
    }
  }
}

/** Whether the upstream has moved to another authorization server, for which there are no tokens yet. */
async function isElsewhere(
  { definition, auth, fetch }: UserAccountOptions,
  before: Account,
  challenge: string
): Promise<boolean> {
  if (auth.tokenUrl !== undefined) return false
  const { resourceMetadata } = await readChallenge(challenge)
  const found = await discoverAuthorization(definition.url, resourceMetadata, auth.issuer, fetch).catch(
    // If discovery fails, the token is refreshed at the server where it was issued.
    () => undefined
  )
  return found !== undefined && found.server.issuer !== before.issuer
}
