// Remembers the authorization server for a client secret whose issuer is not configured: the first one that the
// upstream named. So an attacker who takes over the upstream cannot redirect the secret to another server.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { firstIssuersKey } from '../../store/keys.ts'
import { type Store, unavailable } from '../../store/port.ts'
import type { FirstIssuer } from './discovery.ts'

/** The most pairs of an upstream and a client of one tenant. */
const maxKept = 1_000
/** How often an issuer is written while other processes write one. */
const maxTries = 8

/**
 * A server names another issuer than before. The message goes to operators, and to the person who connects an account.
 */
export class OtherIssuer extends Error {}

type Kept = readonly [upstream: string, clientId: string, issuer: string]

export type FirstIssuers = ReturnType<typeof createFirstIssuers>

/**
 * Issuers are stored unsealed: they are no secrets, and an attacker with access to the store could delete them anyway.
 */
export function createFirstIssuers(store: Pick<Store, 'get' | 'set'>, log: Log) {
  return {
    /**
     * @param auth of the definition, or the part of it that says which client the gateway is there
     * @returns undefined if the client has no secret, or its issuer is configured
     */
    of(
      { tenant, name }: UpstreamDefinition,
      auth: {
        readonly clientId?: string
        readonly clientSecret?: string
        readonly privateKey?: string
        readonly issuer?: string
        readonly tokenUrl?: string
      }
    ): FirstIssuer | undefined {
      const { clientId = '', clientSecret, privateKey, issuer: said, tokenUrl } = auth
      if (said !== undefined || tokenUrl !== undefined || (clientSecret ?? privateKey) === undefined) return undefined
      const key = firstIssuersKey(tenant)
      const keptIn = (text: string | undefined): readonly Kept[] =>
        text === undefined ? [] : (JSON.parse(text) as readonly Kept[])
      const firstIn = (all: readonly Kept[]): string | undefined =>
        all.find(([upstream, client]) => upstream === name && client === clientId)?.[2]

      return {
        read: async () => firstIn(keptIn(await store.get(key))),
        async keep(issuer) {
          for (let tries = 0; tries < maxTries; tries++) {
            const text = await store.get(key)
            const all = keptIn(text)
            const first = firstIn(all)
            if (first === issuer) return
            if (first !== undefined) {
              const message =
                `${name} names ${issuer} as its authorization server, and the secret of its client (${clientId}) was ` +
                `for ${first} first: it is shown to no other. If ${name} has moved there, write beside that clientId ` +
                `issuer: ${issuer}. If not, write issuer: ${first}, and find out who changed ${name}.`
              log.error({ tenant, upstream: name, issuer, first }, message)
              throw new OtherIssuer(message)
            }
            if (all.length >= maxKept)
              throw new OtherIssuer(
                `of ${maxKept} clients of this tenant it is kept whom their secrets are for, and not of another one: ` +
                  `write issuer: ${issuer} beside clientId of ${name}`
              )
            const next: readonly Kept[] = [...all, [name, clientId, issuer]]
            const when = text === undefined ? 'absent' : { is: text }
            if (await store.set(key, JSON.stringify(next), { when })) return
          }
          throw unavailable('Whom secrets of clients are for is being written by others. Try again in a moment.')
        }
      }
    }
  }
}
