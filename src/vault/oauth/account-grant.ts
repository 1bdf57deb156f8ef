// The grant of an account while its tokens change. What was read may be another one by now, since another process
// renews it, or the person connects another: whoever is late changes nothing.

import type { Fetch } from '../../egress/fetch.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { Person, UserAuth } from '../../config/auth/upstream-auth.ts'
import type { Log } from '../../observe/log.ts'
import { ConnectRequiredError } from '../../upstream/rpc/credential.ts'
import type { Account, Grant } from '../grant.ts'
import type { Grants } from '../grants.ts'
import { revokeAccount } from './account-renewal.ts'
import { scopesBesides } from './discovery.ts'

interface AccountGrantOptions {
  readonly definition: HttpDefinition & { readonly person: Person }
  readonly auth: UserAuth
  readonly grantId: string | undefined
  readonly grants: Grants
  readonly fetch: Fetch
  /** The person has to visit the page. */
  readonly connectAgain: (why: string) => ConnectRequiredError
  readonly log: Log
}

export function createAccountGrant(options: AccountGrantOptions) {
  const { definition, auth, grantId, grants, fetch, connectAgain, log } = options
  const { name, tenant, person } = definition
  /** Tokens that the store did not take. At the provider those before them may be of no use any more. */
  let unsaved: { readonly before: Account; readonly next: Account } | undefined

  /** Still the one with these tokens? Another process may have renewed them, or the person have connected another. */
  const isStill = ({ id, account: now, dead }: Grant, before: Account): boolean =>
    id === grantId && dead === undefined && now?.since === before.since

  /**
   * Others have changed it meanwhile.
   * @throws ConnectRequiredError where it is of no use any more
   */
  async function takeOver(): Promise<void> {
    const grant = await grants.get(person, name)
    if (grant?.id !== grantId || grant?.account === undefined) throw connectAgain('it was disconnected')
    if (grant.dead !== undefined) throw connectAgain(grant.dead)
    await grants.refresh(person)
  }

  /** @throws ConnectRequiredError unless there are others by now */
  async function giveUp(before: Account, why: string): Promise<void> {
    const isOver = await grants.change(person, name, (now) =>
      isStill(now, before) ? { ...now, dead: why } : undefined
    )
    if (!isOver) return await takeOver()
    log.info({ upstream: name, tenant, reason: why }, 'an account has to be connected again')
    throw connectAgain(why)
  }

  /** New tokens came too late to be kept. @throws ConnectRequiredError unless there are others by now */
  async function letGo(late: Account): Promise<void> {
    const now = await grants.get(person, name)
    // Where another process has renewed the same account, the provider may end both with one of them.
    if (now?.id !== grantId || now?.dead !== undefined)
      await revokeAccount(late, auth, fetch).catch((err: unknown) => {
        log.warn({ err, upstream: name, tenant }, 'an account could not be given back')
      })
    await takeOver()
  }

  /** @throws ConnectRequiredError where the new tokens are nobody's: they came too late */
  async function keep(before: Account, next: Account): Promise<void> {
    unsaved = { before, next }
    try {
      const isKept = await grants.change(person, name, (now) =>
        isStill(now, before) ? { ...now, account: next } : undefined
      )
      if (isKept) await grants.refresh(person)
      else await letGo(next)
    } catch (error) {
      if (error instanceof ConnectRequiredError) unsaved = undefined
      throw error
    }
    unsaved = undefined
  }

  return {
    get: (): Promise<Grant | undefined> => grants.get(person, name),
    isStill,
    takeOver,
    giveUp,
    keep,
    /** @returns whether there were tokens that the store had not taken */
    async keepUnsaved(): Promise<boolean> {
      if (unsaved === undefined) return false
      await keep(unsaved.before, unsaved.next)
      return true
    },
    /** Scopes that the upstream wants besides: all that calls were refused for, until it is connected again. */
    async lacks(scopes: readonly string[]): Promise<void> {
      await grants.change(person, name, (now) => {
        const known = now.missing ?? []
        const missing = scopesBesides(known, scopes)
        return now.id === grantId && missing.length > known.length ? { ...now, missing } : undefined
      })
    }
  }
}
