// Proofs that a request comes from the holder of the key that its token is bound to (RFC 9449): made for this method,
// this URL and this token, moments ago, and used once, whichever process it comes to.

import { hash } from 'node:crypto'
import { calculateJwkThumbprint, decodeProtectedHeader, importJWK, jwtVerify, type JWK } from 'jose'
import { GatewayError, isObject } from '../protocol/messages.ts'
import { createTokenBucket } from '../limits/limits.ts'
import { dpopProofKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Clock } from '../time/clock.ts'
import type { AuthConfig } from '../config/auth/auth-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import { maxTokenBytes, proofAlgorithms, refused, type Scheme } from './bearer.ts'
import type { Verified } from './token-cache.ts'
import { isName } from './claims.ts'
import type { Nonces } from './dpop-nonces.ts'
import { whyUnusable } from './key-set.ts'
import type { Principal } from './principal.ts'

/** A proof is good for so long after it was made, in seconds; the leeway of the tenant is added on both sides. */
const proofSeconds = 60
/** The most proofs of one caller in a second: each takes a key in the store for as long as it is good. */
const proofsPerSecond = 200
const proofsAtOnce = 1_000
/** The most callers whose proofs are counted; the one with the oldest proof is forgotten first. */
const maxProofCallers = 10_000

/** The header of RFC 9449 section 8.1. */
export const nonceHeader = 'DPoP-Nonce'

interface BoundCredential {
  readonly principal: Principal
  /** Thumbprint of the key. */
  readonly boundTo: string
}

export interface ProvedRequest {
  readonly tenant: Pick<Tenant, 'id' | 'auth'>
  readonly method: string
  /** The URL as callers know it, without a query. */
  readonly url: string
  readonly token: string
}

interface ProofParts {
  /** The store in which used proofs are remembered, for all processes. */
  readonly store: Pick<Store, 'set'>
  readonly nonces: Nonces
  readonly clock: Pick<Clock, 'now'>
}

export function createProofs({ store, nonces, clock }: ProofParts) {
  const buckets = new Map<string, ReturnType<typeof createTokenBucket>>()

  function count({ tenant, issuer, subject }: Principal): void {
    const caller = JSON.stringify([tenant, issuer, subject])
    const bucket = buckets.get(caller) ?? createTokenBucket(clock, proofsPerSecond, proofsAtOnce)
    buckets.delete(caller)
    buckets.set(caller, bucket)
    const [oldest] = buckets.size > maxProofCallers ? buckets.keys() : []
    if (oldest !== undefined) buckets.delete(oldest)
    if (bucket.take()) return
    throw new GatewayError('rate_limited', `This caller sends more than ${proofsPerSecond} proofs of DPoP a second.`, {
      data: { limit: 'proofsPerSecond' }
    })
  }

  /** @returns the newest nonce, if the proof has an older one (section 8.2) */
  function checkNonce(tenant: ProvedRequest['tenant'], nonce: unknown): string | undefined {
    if (tenant.auth.dpopNonces !== true) return undefined
    const current = nonces.current(tenant)
    if (nonce === current) return undefined
    if (typeof nonce === 'string' && nonces.isGood(tenant, nonce)) return current
    throw refused('nonce', `The DPoP proof must name the nonce of the header ${nonceHeader} (RFC 9449).`, undefined, {
      [nonceHeader]: current
    })
  }

  return {
    /**
     * @returns the nonce for the response header, if the client needs a new one
     * @throws GatewayError unauthenticated, rate_limited; unavailable if the store of used proofs is away
     */
    async check(
      rawHeaders: readonly string[],
      { principal, boundTo }: BoundCredential,
      request: ProvedRequest
    ): Promise<string | undefined> {
      const proof = proofIn(rawHeaders)
      const { jti, nonce } = await verifyProof(proof, boundTo, request, clock.now())
      count(principal)
      const next = checkNonce(request.tenant, nonce)
      const ttlMs = (proofSeconds + 2 * request.tenant.auth.leewaySeconds) * 1000
      const isFirst = await store.set(dpopProofKey(principal.tenant, boundTo, jti), '1', { ttlMs, when: 'absent' })
      if (!isFirst) throw refusedProof('was used before. Make one for each request')
      return next
    }
  }
}

/**
 * Checks that a bound token is sent with the scheme `DPoP`, and an unbound one with `Bearer`.
 * @returns the credential that needs a proof; undefined if it needs none
 * @throws GatewayError unauthenticated
 */
export function boundCredential(
  { principal, boundTo }: Verified,
  scheme: Scheme,
  { auth }: Pick<Tenant, 'auth'>
): BoundCredential | undefined {
  if (boundTo !== undefined && scheme === 'DPoP') return { principal, boundTo }
  // Section 7.2: who steals a bound token must not be able to send it without its key.
  if (boundTo !== undefined)
    throw refused('bound', 'The token is bound to a key of its client: send it as "DPoP", with a proof (RFC 9449).')
  if (scheme === 'DPoP') throw refused('unbound', 'The credential is not bound to a key: send it as "Bearer".')
  if (auth.dpop === 'required' && principal.kind === 'token')
    throw refused('unbound', 'The token must be bound to a key of its client (DPoP, RFC 9449), and sent with a proof.')
  return undefined
}

/** Returns the scheme of the challenge that answers a refusal. */
export const schemeFor = (reason: string, sent: Scheme, { dpop, issuers }: AuthConfig): Scheme =>
  reason === 'bound' || (dpop === 'required' && issuers.length > 0) || (sent === 'DPoP' && reason !== 'unbound')
    ? 'DPoP'
    : 'Bearer'

/** Returns the scheme with which a request sends its credential; `Bearer` where it sends none. */
export function schemeOf(rawHeaders: readonly string[]): Scheme {
  const value = rawHeaders.find((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'authorization')
  return value !== undefined && /^dpop /i.test(value) ? 'DPoP' : 'Bearer'
}

const refusedProof = (fault: string, detail?: string): GatewayError =>
  refused('proof', `The DPoP proof ${fault} (RFC 9449).`, detail)

/** RFC 9449 section 4.3: exactly one. */
function proofIn(rawHeaders: readonly string[]): string {
  const found = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'dpop')
  const [proof] = found
  if (proof === undefined) throw refusedProof('is missing: send it in the header DPoP')
  if (found.length > 1) throw refusedProof('is there twice: send one header DPoP')
  if (proof.length > maxTokenBytes) throw refusedProof(`is longer than ${maxTokenBytes} bytes`)
  return proof
}

/**
 * RFC 9449 section 4.3, but for the nonce.
 * @param now epoch milliseconds
 */
async function verifyProof(
  proof: string,
  boundTo: string,
  { tenant, method, url, token }: ProvedRequest,
  now: number
): Promise<{ readonly jti: string; readonly nonce: unknown }> {
  const { leewaySeconds } = tenant.auth
  const { typ, alg, jwk } = headerOf(proof)
  if (typ !== 'dpop+jwt') throw refusedProof('is not of type dpop+jwt', JSON.stringify(typ))
  if (typeof alg !== 'string' || !proofAlgorithms.includes(alg))
    throw refusedProof(`must be signed with one of ${proofAlgorithms.join(', ')}`, JSON.stringify(alg))
  if (!isPublicKey(jwk)) throw refusedProof('has no usable public key in its header')
  // Before the signature check: a proof with another key costs only a digest.
  if ((await calculateJwkThumbprint(jwk).catch(() => undefined)) !== boundTo)
    throw refusedProof('is by another key than the one that the token is bound to')
  const { payload } = await importJWK(jwk, alg)
    .then((key) =>
      jwtVerify(proof, key, { algorithms: [alg], currentDate: new Date(now), clockTolerance: leewaySeconds })
    )
    .catch((error: unknown) => {
      throw refusedProof('cannot be verified', error instanceof Error ? error.name : undefined)
    })
  const { jti, htm, htu, iat, ath, nonce } = payload
  if (!isName(jti)) throw refusedProof('needs "jti"')
  if (htm !== method) throw refusedProof(`is for another method: "htm" must be ${method}`)
  if (!isSameUrl(htu, url)) throw refusedProof(`is for another URL: "htu" must be ${url}`)
  if (ath !== hash('sha256', token, 'base64url')) throw refusedProof('is for another token: "ath" is not its digest')
  const age = typeof iat === 'number' ? now / 1000 - iat : NaN
  if (!(age >= -leewaySeconds && age <= proofSeconds + leewaySeconds))
    throw refusedProof('is too old or from the future: check "iat", and the clocks')
  return { jti, nonce }
}

function headerOf(proof: string) {
  try {
    return decodeProtectedHeader(proof)
  } catch (error) {
    throw refusedProof('is not a signed JWT', error instanceof Error ? error.name : undefined)
  }
}

/** Clients choose their keys: a huge key would make each signature check slow. */
const isPublicKey = (jwk: unknown): jwk is JWK => isObject(jwk) && whyUnusable(jwk) === undefined

/** Section 4.2: without query and fragment. The same URL may be written otherwise (RFC 3986 section 6.2). */
const isSameUrl = (htu: unknown, url: string): boolean =>
  typeof htu === 'string' && !/[?#]/.test(htu) && URL.canParse(htu) && new URL(htu).href === new URL(url).href
