// Shared by the routes that act like a host (doctor, try): endpoint, listener, credential, and a limit of concurrency.

import { Type } from '../../config/schema/type.ts'
import type { Endpoint, Tenant } from '../../config/snapshot.ts'
import type { OwnListener } from '../../hosts/own-request.ts'
import { createQuota } from '../../limits/limits.ts'
import { endpointName } from '../../protocol/messages.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import type { AdminServices } from '../route.ts'

/** The longest credential, in characters: the gateway accepts no longer one. */
const maxCredentialLength = 16_384

/** A member of a body. @param whose in words */
export const credentialSchema = (whose: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: maxCredentialLength,
      pattern: '^[\\x21-\\x7e]+$',
      patternErrorMessage: 'must be of visible ASCII characters, without spaces or line breaks',
      description: `An API key of the tenant, or a token, ${whose}. It is neither stored nor logged.`
    })
  )

/** @throws AdminProblem not_found */
export function namedEndpoint({ endpoints }: Tenant, name: string): Endpoint {
  const endpoint = endpoints.get(endpointName(name))
  if (endpoint === undefined) throw noSuch('endpoint')
  return endpoint
}

/** @throws AdminProblem unavailable while it does not listen yet */
export function ownListener({ state: { address } }: Pick<AdminServices, 'state'>): OwnListener {
  if (address !== undefined) return address
  throw new AdminProblem('unavailable', 'The gateway does not listen yet.', 'Try again in a second.')
}

/** @param most the places that one owner, such as a tenant, may have */
export function createPlaces(max: number, message: string, most = max / 2) {
  const quota = createQuota()
  return {
    /** @returns what frees the place again, once. @throws AdminProblem rate_limited */
    take(owner: string): () => void {
      const free = quota.take(1, [
        ['', max],
        [`of ${owner}`, most]
      ])
      if (free !== undefined) return free
      throw new AdminProblem('rate_limited', message, 'Wait until one has ended.', { headers: { 'Retry-After': '5' } })
    }
  }
}
