// `auth: { type: signed }`: the gateway sends the identity of the caller in a short-lived JWT (an assertion), which the
// upstream verifies with the keys that the gateway publishes.

import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Caller, SignedAuth } from '../../config/auth/upstream-auth.ts'
import { valueOfCaller } from '../../config/auth/principal-text.ts'
import { principalNameOf } from '../../config/auth/told-caller.ts'
import type { HttpDefinition, Tenant } from '../../config/snapshot.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { abortable } from '../../time/clock.ts'
import type { UpstreamCredential } from '../../upstream/rpc/credential.ts'
import type { SigningKeys } from './signing-keys.ts'

/** A `typ` of its own, so that no server accepts an assertion as an access token (RFC 8725 section 3.11). */
const type = 'caller+jwt'
const lifetimeSeconds = 60
/** How long the requests of a caller carry the same assertion, in milliseconds. */
const usedMs = 30_000
/** An assertion that was refused is replaced where it is older than this. */
const replaceMs = 5_000

const noSecrets: readonly string[] = []

const assertionIssuerOf = (publicUrl: string, tenant: string): string => `${publicUrl}/t/${tenant}`

/** Whether any upstream of the tenant is sent signed assertions. */
export const signs = ({ upstreams }: Tenant): boolean =>
  [...upstreams.values()].some((definition) => definition.type === 'http' && definition.auth?.type === 'signed')

interface AssertionOptions {
  readonly definition: HttpDefinition & { readonly caller: Caller }
  readonly auth: SignedAuth
  readonly keys: SigningKeys
  readonly publicUrl: () => string
  readonly wall: { now(): number }
}

export function createAssertions(options: AssertionOptions): UpstreamCredential {
  const { definition, keys, wall } = options
  let lines = ''
  let secrets = noSecrets
  let since = -Infinity
  let pending: Promise<void> | undefined

  async function sign(): Promise<void> {
    const now = wall.now()
    const assertion = await signed(options, await keys.of(definition.tenant), Math.floor(now / 1000))
    lines = `authorization: Bearer ${assertion}\r\n`
    secrets = [assertion]
    since = now
  }

  /** One new assertion for all callers that wait. */
  function renewed(signal: AbortSignal): Promise<void> {
    pending ??= sign()
      .catch((cause: unknown) => {
        const message = `Upstream ${definition.name} was not called: who calls could not be signed. Retry in a second.`
        throw new GatewayError('upstream_unavailable', message, { cause, data: { upstream: definition.name } })
      })
      .finally(() => {
        pending = undefined
      })
    return abortable(pending, signal)
  }

  /** Whether the assertion is younger than `ms`; false also after the clock was set back. */
  const isYoungerThan = (ms: number): boolean => wall.now() >= since && wall.now() - since < ms

  return {
    lines: () => lines,
    secrets: () => secrets,
    hint: () =>
      'it does not take the assertion of who calls: check that it verifies by jwks.json of this tenant, and audience ' +
      'of its auth.',
    ready: (signal) => (isYoungerThan(usedMs) ? undefined : renewed(signal)),
    async refused(refusedLines, { status }, signal) {
      if (refusedLines !== lines) return true
      if (status !== 401 || isYoungerThan(replaceMs)) return false
      await renewed(signal)
      return true
    }
  }
}

async function signed(
  { definition: { tenant, url, caller }, auth, publicUrl }: AssertionOptions,
  { signing, kid }: Awaited<ReturnType<SigningKeys['of']>>,
  seconds: number
): Promise<string> {
  const { issuer, subject, clientId } = caller
  const told = auth.claims.map((name) => [name, valueOfCaller(caller, { name: principalNameOf(name) })] as const)
  return await new SignJWT({
    ...Object.fromEntries(told.filter(([, value]) => value !== undefined)),
    // RFC 9493 section 3.2.4: the same subject of two identity providers is two people.
    sub_id: { format: 'iss_sub', iss: issuer, sub: subject },
    client_id: clientId
  })
    .setProtectedHeader({ alg: 'ES256', kid, typ: type })
    .setIssuer(assertionIssuerOf(publicUrl(), tenant))
    .setSubject(`${issuer}|${subject}`)
    .setAudience(auth.audience ?? url)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + lifetimeSeconds)
    .setJti(randomUUID())
    .sign(signing)
}
