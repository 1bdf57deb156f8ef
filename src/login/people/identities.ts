// Those who have signed in at the tenant's provider, and whether they are still who they were: the provider is asked
// again at each refresh, by one process at a time.

import type { LoginConfig } from '../../config/auth/login-config.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { LoginRecords } from '../records.ts'
import { SignInRefused, type Identity } from './identity.ts'
import type { createSignIn } from './sign-in.ts'

/** The time for which one answer of the provider serves everybody who asks, in milliseconds. */
const freshMs = 30_000
/**
 * The longest time for which one process asks, for metadata and then for tokens, while the others wait for its answer.
 */
const askingMs = 22_000
const pollMs = 100

interface IdentitiesOptions {
  readonly records: LoginRecords
  readonly signIn: Pick<ReturnType<typeof createSignIn>, 'again' | 'signOutUrl'>
  readonly config: LoginConfig
  /** `clock` measures durations, `wall` tells the time of day. */
  readonly clock: Clock
  readonly wall: Pick<Clock, 'now'>
  /** The provider was asked, and the person is out until they sign in again. */
  readonly onOut: (subject: string, reason: string) => void
}

export function createIdentities({ records, signIn, config, clock, wall, onOut }: IdentitiesOptions) {
  const ttlMs = config.refreshDays * 24 * 60 * 60_000
  const sessionMs = config.sessionHours * 60 * 60_000
  async function get(subject: string): Promise<Identity | undefined> {
    const identity = (await records.read('Identity', subject)) as Identity | undefined
    // Rules are about them by now: whoever signs in anew is judged anew, and told why not.
    if (identity?.leftOut?.some((kind) => config.provider.neededWhole?.includes(kind)) === true) return undefined
    if (identity === undefined || identity.refreshToken !== undefined) return identity
    // The provider cannot be asked without the person: good for a working day, then they sign in again.
    return wall.now() - identity.signedInAt < sessionMs ? identity : undefined
  }
  const keep = (identity: Identity): Promise<void> => records.write('Identity', identity.subject, identity, ttlMs)
  const isFresh = ({ askedAt }: Identity): boolean => Math.abs(wall.now() - askedAt) < freshMs

  /** Another process asks: its answer is waited for. */
  async function awaitOther(subject: string): Promise<Identity | undefined> {
    for (let waited = 0; waited < askingMs; waited += pollMs) {
      const identity = await get(subject)
      if (identity === undefined || isFresh(identity)) return identity
      await pause(clock, pollMs)
    }
    throw new Error('another process asks the provider and does not come to an end')
  }

  async function ask(before: Identity): Promise<Identity | undefined> {
    const { subject } = before
    if (!(await records.isFirst('Asking', subject, askingMs))) return await awaitOther(subject)
    try {
      // It may have changed since it was read: a refresh token is good once.
      const identity = await get(subject)
      if (identity === undefined || isFresh(identity)) return identity
      const { refreshToken } = identity
      if (refreshToken === undefined) return identity
      const next = await signIn.again({ ...identity, refreshToken })
      await keep(next)
      return next
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error
      // Hosts begin anew, and there the person sees why.
      await records.remove('Identity', subject)
      onOut(subject, error.message)
      return undefined
    } finally {
      await records.remove('Asking', subject)
    }
  }

  return {
    /** @returns undefined where the person has to sign in */
    get,
    keep,
    /** @returns where a browser signs out at the provider; undefined where it does not */
    signOutUrl: async (subject?: string): Promise<string | undefined> =>
      signIn.signOutUrl(subject === undefined ? undefined : await get(subject)),
    /**
     * As `get`, as the provider sees the person now.
     * @returns undefined where the person has to sign in again
     * @throws Error where the provider cannot be asked
     */
    async current(subject: string): Promise<Identity | undefined> {
      const identity = await get(subject)
      if (identity?.refreshToken === undefined || isFresh(identity)) return identity
      return await ask(identity)
    }
  }
}
