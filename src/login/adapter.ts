// The adapter of oidc-provider over the store (https://github.com/panva/node-oidc-provider, "adapter").

import type { Adapter, AdapterPayload } from 'oidc-provider'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import type { LoginRecords } from './records.ts'

/** How long a client is kept that registered itself and never got a code. */
const unusedClientMs = 24 * 60 * 60_000

/**
 * A process that has read that a code or token is unused uses it within this time, longer than the provider may take.
 */
const atOnceMs = 10 * 60_000

/** Kinds of records that unauthenticated clients write: when they register, and when an authorization begins. */
const ofStrangers = new Set(['Client', 'Interaction'])
/** The longest of these records, as JSON. */
const maxStrangerChars = 8_192

/** Kinds of records that end with their grant. */
const ofGrants = new Set(['AccessToken', 'AuthorizationCode', 'RefreshToken'])

interface AdapterOptions {
  /** How long a client is kept after it got a code or a token: at least as long as its refresh token is good. */
  readonly clientMs: number
  readonly records: LoginRecords
  readonly clock: Pick<Clock, 'now'>
  /**
   * What to throw where a code or token is used a second time, at the same moment in another process too.
   * @param endedGrant whose code or token it was: all of it has ended
   */
  readonly alreadyUsed: (endedGrant?: string) => Error
  /** What to throw where a stranger would have more kept than this. */
  readonly tooLong: (maxChars: number) => Error
  /** What to throw where the store is away: hosts keep what they have and come back. */
  readonly away: () => Error
}

/** @returns the adapter of one kind of record, such as `RefreshToken` */
export function createLoginAdapter(kind: string, options: AdapterOptions): Adapter {
  const adapter = storedAs(kind, options)
  const told = (error: unknown): never => {
    throw error instanceof GatewayError ? options.away() : error
  }
  return {
    upsert: (id, payload, expiresIn) => adapter.upsert(id, payload, expiresIn).catch(told),
    find: (id) => adapter.find(id).catch(told),
    findByUid: (uid) => adapter.findByUid(uid).catch(told),
    // Of the device flow, which is not offered.
    findByUserCode: async () => undefined,
    consume: (id) => adapter.consume(id).catch(told),
    destroy: (id) => adapter.destroy(id).catch(told),
    revokeByGrantId: (grant) => adapter.revokeByGrantId(grant).catch(told)
  }
}

function storedAs(kind: string, options: AdapterOptions) {
  const { clientMs, records, clock, alreadyUsed, tooLong } = options
  const find = async (id: string): Promise<AdapterPayload | undefined> =>
    (await records.read(kind, id)) as AdapterPayload | undefined

  return {
    async upsert(id: string, payload: AdapterPayload, expiresIn: number | undefined): Promise<void> {
      if (ofStrangers.has(kind) && JSON.stringify(payload).length > maxStrangerChars) throw tooLong(maxStrangerChars)
      // Only registered clients have no end.
      const ttlMs = expiresIn === undefined || !(expiresIn > 0) ? unusedClientMs : expiresIn * 1_000
      // Two proofs that come at once, at two processes, have both been looked for and not found.
      if (kind === 'ReplayDetection' && !(await records.isFirst(`${kind} used`, id, ttlMs))) throw alreadyUsed()
      await records.write(kind, id, payload, ttlMs)
      if (kind === 'Session' && payload.uid !== undefined) await records.write('SessionUid', payload.uid, id, ttlMs)
      if (kind === 'Grant' && payload.accountId !== undefined) await records.addConsent(payload.accountId, id, ttlMs)
      if (payload.grantId === undefined || !ofGrants.has(kind)) return
      await records.addToGrant(payload.grantId, kind, id, ttlMs)
      if (payload.clientId !== undefined) await records.touch('Client', payload.clientId, clientMs)
    },
    find,
    async findByUid(uid: string): Promise<AdapterPayload | undefined> {
      const id = await records.read('SessionUid', uid)
      return typeof id === 'string' ? await find(id) : undefined
    },
    async consume(id: string): Promise<void> {
      const payload = await find(id)
      if (payload === undefined) throw alreadyUsed()
      const ttlMs = Math.max(1_000, (payload.exp ?? 0) * 1_000 - clock.now())
      // Two that come at once, at two processes, have both read that it is unused. One of them is a thief (RFC 9700
      // section 4.14), and nobody knows which: the first gets a token that has nothing behind it.
      if (!(await records.isFirst(`${kind} used`, id, Math.min(ttlMs, atOnceMs)))) {
        if (payload.grantId === undefined) throw alreadyUsed()
        await records.endGrant(payload.grantId)
        throw alreadyUsed(payload.grantId)
      }
      await records.write(kind, id, { ...payload, consumed: Math.floor(clock.now() / 1_000) }, ttlMs)
    },
    async destroy(id: string): Promise<void> {
      await records.remove(kind, id)
    },
    revokeByGrantId: (grant: string): Promise<void> => records.removeGrant(grant)
  }
}
