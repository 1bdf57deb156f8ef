// What the routes that go the way of a host have in common: which endpoint, at which listener, with which credential,
// and not too many at once.

import { Type } from '../../config/schema/type.ts'
import type { Endpoint, Tenant } from '../../config/snapshot.ts'
import type { OwnListener } from '../../hosts/own-request.ts'
import { endpointName } from '../../protocol/messages.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import type { AdminServices } from '../route.ts'

/** Longer ones are none that the gateway would take. In characters. */
const maxCredentialLength = 16_384

/** A member of a body. @param whose in words */
export const credentialSchema = (whose: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: maxCredentialLength,
      pattern: '^[\\x21-\\x7e]+$',
      patternErrorMessage: 'must be of visible ASCII characters, without spaces or line breaks',
      description: `An API key of the tenant, or a token, ${whose}. It is neither kept nor written down.`
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

/** Administrators of one tenant leave at least half of the places to those of others. */
export function createPlaces(max: number, message: string) {
  const taken: string[] = []
  return {
    /** @returns what frees the place again. @throws AdminProblem rate_limited */
    take(tenant: string): () => void {
      if (taken.length >= max || taken.filter((each) => each === tenant).length >= max / 2)
        throw new AdminProblem('rate_limited', message, 'Wait until one has ended.', {
          headers: { 'Retry-After': '5' }
        })
      taken.push(tenant)
      return () => void taken.splice(taken.indexOf(tenant), 1)
    }
  }
}
