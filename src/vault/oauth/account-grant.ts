// Updates the grant of an account when its tokens change. Meanwhile another process may have renewed the tokens, or the
// person may have connected another account: a late write then changes nothing.

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
  /** Makes the error that sends the person to the connect page. */
  readonly connectAgain: (why: string) => ConnectRequiredError
  readonly log: Log
}

export function createAccountGrant(options: AccountGrantOptions) {
  const { definition, auth, grantId, grants, fetch, connectAgain, log } = options
  const { name, tenant, person } = definition
  /** New tokens that could not be stored. The provider may no longer accept the ones before them. */
  let unsaved: { readonly before: Account; readonly next: Account } | undefined

  /** Whether the grant still has these tokens: they may have been renewed elsewhere, or another account connected. */
  const isStill = ({ id, account: now, dead }: Grant, before: Account): boolean =>
    id === grantId && dead === undefined && now?.since === before.since

  /**
   * Uses the grant as another process has changed it.
   * @throws ConnectRequiredError if it is no longer usable
   */
  async function takeOver(): Promise<void> {
    const grant = await grants.get(person, name)
    if (grant?.id !== grantId || grant?.account === undefined) throw connectAgain('it was disconnected')
    if (grant.dead !== undefined) throw connectAgain(grant.dead)
    await grants.refresh(person)
  }

  /** Marks the grant as unusable. @throws ConnectRequiredError unless it has other tokens by now */
  async function giveUp(before: Account, why: string): Promise<void> {
    const isOver = await grants.change(person, name, (now) =>
      isStill(now, before) ? { ...now, dead: why } : undefined
    )
    if (!isOver) return await takeOver()
    log.info({ upstream: name, tenant, reason: why }, 'an account has to be connected again')
    throw connectAgain(why)
  }

  /**
   * Gives back new tokens that came too late to be stored.
   * @throws ConnectRequiredError unless there are others by now
   */
  async function letGo(late: Account): Promise<void> {
    const now = await grants.get(person, name)
    // If another process has renewed the same account, revoking one token could end both: nothing is given back.
    if (now?.id !== grantId || now?.dead !== undefined)
      await revokeAccount(late, auth, fetch).catch((err: unknown) => {
        log.warn({ err, upstream: name, tenant }, 'an account could not be given back')
      })
    await takeOver()
  }

  /** Stores the new tokens. @throws ConnectRequiredError if they came too late and the grant is no longer usable */
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
    /** Stores the tokens of an earlier failed write. @returns whether there were any */
    async keepUnsaved(): Promise<boolean> {
      if (unsaved === undefined) return false
      await keep(unsaved.before, unsaved.next)
      return true
    },
    /** Adds scopes for whose lack the upstream refused a call; they are requested when the person connects again. */
    async lacks(scopes: readonly string[]): Promise<void> {
      await grants.change(person, name, (now) => {
        const known = now.missing ?? []
        const missing = scopesBesides(known, scopes)
        return now.id === grantId && missing.length > known.length ? { ...now, missing } : undefined
      })
    }
  }
}
