// What upstreams are shown of who calls, by their `auth`.

import type { Log } from '../observe/log.ts'
import type { HttpDefinition, UpstreamDefinition } from '../config/snapshot.ts'
import type { Clock } from '../time/clock.ts'
import type { UpstreamCredential, UpstreamCredentials } from '../upstream/rpc/credential.ts'
import { createClientCredentials } from './client-credentials.ts'
import type { VaultFetch } from './vault-fetch.ts'

interface CredentialsOptions {
  readonly fetch: VaultFetch
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

/** One for a process: connections of the same definition share a token. */
export function createCredentials({ fetch, wall, log }: CredentialsOptions) {
  const known = new Map<string, UpstreamCredential>()

  function made(definition: HttpDefinition): UpstreamCredential | undefined {
    const { auth, url } = definition
    if (auth === undefined) return undefined
    const written = [url, auth.issuer, auth.tokenUrl]
    return createClientCredentials(definition, auth, fetch(written), wall, log)
  }

  return {
    of(definition: UpstreamDefinition): UpstreamCredential | undefined {
      if (definition.type !== 'http' || definition.auth === undefined) return undefined
      const credential = known.get(definition.hash) ?? made(definition)
      if (credential !== undefined) known.set(definition.hash, credential)
      return credential
    },
    /** Forgets the tokens of what is no longer configured. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of known.keys()) if (!hashes.has(hash)) known.delete(hash)
    }
  } satisfies UpstreamCredentials & { retain: unknown }
}
