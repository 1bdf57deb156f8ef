// Warnings of `gatehouse check` about secrets of a valid configuration that unintended processes or servers could read.

import type { Tenant, UpstreamDefinition } from '../snapshot.ts'

/** The most upstreams that are named whose processes could read the memory or environment of others. */
const maxNamed = 5

/** @returns a sentence for each */
export function exposedSecrets(tenants: ReadonlyArray<Pick<Tenant, 'id' | 'upstreams'>>): string[] {
  // A sandbox hides other processes from the upstream, but does not hide the upstream from others.
  const onlookers = tenants.flatMap(({ id, upstreams }) =>
    [...upstreams.values()].flatMap((each) =>
      each.type === 'stdio' && each.sandbox !== 'required' ? [`${each.name} of ${id}`] : []
    )
  )
  return tenants.flatMap(({ id, upstreams }) => exposedIn(id, [...upstreams.values()], onlookers))
}

function exposedIn(id: string, upstreams: readonly UpstreamDefinition[], onlookers: readonly string[]): string[] {
  return upstreams.flatMap((definition) => {
    const secret = unaddressedSecret(definition)
    const notes = []
    if (secret !== undefined)
      notes.push(
        `${secret} of the upstream ${definition.name} of ${id} is for the authorization server that ` +
          `${definition.name} names first, whichever that is. Name it beside clientId, as issuer (docs/connections.md).`
      )
    if (definition.type === 'stdio' && definition.auth !== undefined && onlookers.length > 0)
      notes.push(
        `what people enter for the upstream ${definition.name} of ${id} stands in the environment of its processes ` +
          `(${definition.auth.env}), which other processes of the same user can read, without a sandbox: ` +
          `those of ${onlookers.slice(0, maxNamed).join(', ')}${onlookers.length > maxNamed ? ' and others' : ''}. ` +
          'Write "sandbox: required" there (docs/upstreams.md).'
      )
    return notes
  })
}

/** Returns the secret of `auth` that is sent to an authorization server which the configuration does not name. */
function unaddressedSecret({ type, auth }: UpstreamDefinition): string | undefined {
  if (type !== 'http' || auth === undefined || !('clientId' in auth)) return undefined
  if (auth.type === 'tokenExchange') {
    const { identityAssertion: client } = auth
    return client === undefined || client.issuer !== undefined ? undefined : nameOf(client)
  }
  const isNamed = auth.issuer !== undefined || auth.tokenUrl !== undefined
  return isNamed || (auth.type === 'user' && auth.provider !== undefined) ? undefined : nameOf(auth)
}

const nameOf = (client: { readonly clientSecret?: string; readonly privateKey?: string }): string | undefined =>
  (['clientSecret', 'privateKey'] as const).find((name) => client[name] !== undefined)
