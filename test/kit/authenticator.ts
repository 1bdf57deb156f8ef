// The authentication module as the front of the gateway uses it, with a clock that a test moves and a log that it can
// read.

import { pino } from 'pino'
import { type Authenticator, createAuthenticator } from '../../src/auth/authenticate.ts'
import type { ProtectedResource } from '../../src/auth/verifier.ts'
import { createFetch, type Fetch } from '../../src/egress/fetch.ts'
import type { AuthConfig, IssuerConfig } from '../../src/config/auth/auth-config.ts'
import type { Tenant } from '../../src/config/snapshot.ts'
import type { Principal } from '../../src/auth/principal.ts'
import type { Log } from '../../src/observe/log.ts'
import type { Store } from '../../src/store/port.ts'
import { GatewayError, tenantId } from '../../src/protocol/messages.ts'
import type { Teardown } from './listen.ts'

export const resource = 'https://mcp.example.com/t/acme/mcp'
export const metadataUrl = 'https://mcp.example.com/.well-known/oauth-protected-resource/t/acme/mcp'

export interface TestClock {
  now(): number
  advance(ms: number): void
}

export function clockAt(ms: number): TestClock {
  return {
    now: () => ms,
    advance: (by) => {
      ms += by
    }
  }
}

export interface RecordedLog {
  readonly log: Log
  readonly lines: Array<Record<string, unknown>>
  /** Reason codes in the order they were logged. */
  reasons(): unknown[]
}

function recordedLog(): RecordedLog {
  const lines: Array<Record<string, unknown>> = []
  const log = pino(
    { level: 'trace', base: null },
    {
      write: (line: string) => {
        lines.push(JSON.parse(line) as Record<string, unknown>)
      }
    }
  )
  return {
    log,
    lines,
    reasons: () => lines.filter((line) => line['msg'] === 'authentication refused').map((line) => line['reason'])
  }
}

export function trust(issuer: string, more: Partial<IssuerConfig> = {}): IssuerConfig {
  return {
    issuer,
    jwksUri: undefined,
    algorithms: ['ES256', 'RS256'],
    requireTyp: true,
    audiences: [],
    maxLifetimeSeconds: 86_400,
    ...more
  }
}

export function tenantWith(auth: Partial<AuthConfig>, id = 'acme'): Tenant {
  return {
    id: tenantId(id),
    origins: new Set(),
    auth: { mode: 'bearer', issuers: [], keys: [], requiredScopes: [], leewaySeconds: 30, ...auth },
    upstreams: new Map(),
    endpoints: new Map(),
    policy: undefined,
    audit: { required: false, arguments: false, redact: [] },
    tags: new Map()
  }
}

export interface TestAuthenticator extends RecordedLog {
  readonly clock: TestClock
  readonly authenticator: Authenticator
  /** The principal, or the error that the caller would get. */
  present(token: string | undefined, tenant?: Tenant, at?: string, address?: string): Promise<Principal | GatewayError>
}

export function testAuthenticator(
  t: Teardown,
  tenant: Tenant,
  options: { clock?: TestClock; fetch?: Fetch; store?: Pick<Store, 'set'> } = {}
): TestAuthenticator {
  const { clock = clockAt(Date.now()), fetch = createFetch(), store = onlyOnce() } = options
  const book = recordedLog()
  const authenticator = createAuthenticator({ clock, fetchFor: () => fetch, store, sealer: noNonces, log: book.log })
  t.teardown(() => authenticator.close())
  return {
    ...book,
    clock,
    authenticator,
    async present(token, of = tenant, at = resource, address) {
      try {
        return await authenticator.authenticate(of, placeAt(at), {
          rawHeaders: token === undefined ? [] : ['Authorization', `Bearer ${token}`],
          address,
          method: 'POST'
        })
      } catch (error) {
        if (error instanceof GatewayError) return error
        throw error
      }
    }
  }
}

export const placeAt = (at: string): ProtectedResource => ({
  endpoint: 'default',
  url: at,
  resource: at,
  aliases: [],
  metadata: metadataUrl
})

/** No tenant here wants nonces. */
const noNonces = { proofs: () => () => '', proves: () => false }

/** As a store, which says whether a key was absent. */
function onlyOnce(): Pick<Store, 'set'> {
  const keys = new Set<string>()
  return {
    set: async (key) => {
      const isNew = !keys.has(key)
      keys.add(key)
      return isNew
    }
  }
}

/** What a test compares: `ada` for a principal, the status for an error. */
export function outcome(result: Principal | GatewayError): string | number {
  return result instanceof GatewayError ? result.row.status : result.subject
}
