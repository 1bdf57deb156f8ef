// The credential for a secret that a person has entered: it is in the headers of their personal definition. A secret
// that the server refuses has to be entered again.

import { personKeyOf } from '../auth/principal.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { type ConnectPage, ConnectRequiredError, type UpstreamCredential } from '../upstream/rpc/credential.ts'
import type { Grants } from './grants.ts'

export function createUserSecret(
  { name, tenant, person, hash }: HttpDefinition & { readonly person: Person },
  grants: Pick<Grants, 'change' | 'get' | 'refresh'>,
  page: ConnectPage,
  log: Log
): UpstreamCredential {
  const grantId = hash.split('.')[1]

  return {
    lines: () => '',
    secrets: () => [],
    ready: () => undefined,
    hint: () => `it does not let your key do this. Another one you can enter at ${page(personKeyOf(person)).url}`,
    async refused(_lines, { status }) {
      // RFC 9110 section 15.5.2: 401 means that the secret is invalid; 403 may concern this call alone.
      if (status !== 401) return false
      const dead = `${name} does not accept it (HTTP 401)`
      const isMarked = await grants.change(person, name, (now) =>
        now.id === grantId && now.dead === undefined ? { ...now, dead } : undefined
      )
      if (isMarked) log.info({ upstream: name, tenant }, 'an upstream does not accept the key of a person')
      const now = isMarked ? undefined : await grants.get(person, name)
      if (now !== undefined && now.id !== grantId && now.dead === undefined) {
        // The headers of this connection hold an earlier secret.
        await grants.refresh(person)
        throw new GatewayError(
          'upstream_unavailable',
          `Upstream ${name} was called with your key of before, which it does not accept, while you entered another ` +
            'one. Call again: the new one is used.',
          { data: { upstream: name } }
        )
      }
      const { url } = page(personKeyOf(person))
      throw new ConnectRequiredError(`Your key of ${name} has to be entered again: ${dead}. Open ${url}`, url)
    }
  }
}
