// Every key and channel of the store; docs/storage.md says what stands there, for how long, and what is lost with it.
// What a caller supplied enters a key only as a digest of fixed length: no name can reach into the key of another.

import { hash } from 'node:crypto'

/** Kinds of keys, and the parts that follow the kind, each as its digest. */
export const keyTable = {
  session: ['tenant', 'endpoint', 'session id'],
  'dpop-proof': ['tenant', 'thumbprint', 'jti'],
  'session-home': ['key of the session', 'process'],
  'session-keeper': ['key of the session', 'process'],
  'upstream-session': ['key of the session', 'hash of the upstream definition'],
  'upstream-sessions': ['tenant'],
  'session-ends': ['tenant'],
  'open-sessions': ['tenant'],
  tenants: [],
  'principal-seat': ['tenant', 'issuer', 'subject', 'seat'],
  'tenant-seat': ['tenant', 'seat'],
  listing: ['hash of the upstream definition'],
  'listing-past': ['hash of the upstream definition'],
  'shared-tools': ['hash of the upstream definition'],
  'shared-tools-of': ['hash of the upstream definition'],
  events: ['key of the session', 'stream id'],
  tasks: ['tenant', 'epoch', 'endpoint', 'issuer', 'subject', 'client id'],
  'bridged-task': ['tenant', 'epoch', 'issuer', 'subject', 'place'],
  'bridged-task-count': ['tenant', 'epoch', 'issuer', 'subject', 'size'],
  audit: ['tenant', 'chain', 'segment'],
  'audit-index': ['tenant'],
  'audit-heads': ['tenant'],
  'audit-key': [],
  'control-head': [],
  'control-version': ['number'],
  'control-request': ['admin key', 'Idempotency-Key'],
  'control-request-count': ['admin key'],
  'console-session': ['administrator', 'place'],
  usage: ['tenant', 'day', 'process'],
  'usage-index': ['tenant', 'day'],
  limit: ['tenant', 'limit', 'whose', 'time'],
  login: ['tenant', 'kind', 'id'],
  'login-grant': ['tenant', 'grant'],
  'vault-key': ['tenant'],
  'exchanged-token': ['tenant', 'definition'],
  'exchange-turn': ['tenant', 'definition'],
  'assertion-keys': ['tenant'],
  grant: ['tenant', 'issuer', 'subject', 'upstream'],
  'grant-used': ['tenant', 'issuer', 'subject', 'upstream'],
  'grant-index': ['tenant'],
  'grant-ends': ['tenant'],
  'grant-client': ['tenant', 'issuer'],
  'first-issuers': ['tenant'],
  'grant-pending': ['tenant', 'state'],
  'grant-begun': ['tenant', 'issuer', 'subject'],
  'grant-renewal': ['tenant', 'issuer', 'subject', 'upstream'],
  'signed-out': ['tenant', 'sign-in'],
  'seal-key': [],
  health: []
} as const
type Kind = keyof typeof keyTable
type Named<Parts extends readonly string[]> = { readonly [At in keyof Parts]: string }

/**
 * On this channel: `=` and the key of a session whose record changed; the number of ends of a tenant, its name, and the
 * key of the session that ended, or no key where all its sessions did (session/session-epochs).
 */
export const sessionsChannel = 'sessions'

/** On this channel: the number of a version of the configuration that was written (control/control). */
export const controlChannel = 'control'

/** On this channel: the key of a bucket of which a process finds no more (store/leased-buckets). */
export const shortageChannel = 'limits'

/**
 * The channel of one process, for sealed messages of the others (session/bus/wire/bus-messages.ts).
 * @param node its name, unique on the store
 */
export const nodeChannel = (node: string): string => `node:${node}`

/**
 * On this channel: the digest of a person, whose grants have changed; or `=` and a tenant, where those of many have
 * (vault/grants).
 */
export const grantsChannel = 'grants'

/** On this channel: the hash of an upstream definition whose shared tools have changed (vault/shared-tools). */
export const sharedToolsChannel = 'shared-tools'

/** Stands for every process where one is named. No process has this name. */
export const everyNode = 'all'

/** A hundred years, for counters and logs, which need a time to live. */
export const foreverMs = 100 * 365 * 24 * 60 * 60 * 1000
export const tenantsKept = 10_000
/** The most sessions of a tenant, the latest ones, that plans, kill switches of callers and usage counts read. */
export const sessionsLookedAt = 10_000
/** The most sessions of a tenant that are listed with their sessions at HTTP servers, the latest ones. */
export const upstreamSessionsListed = 5_000
export const listingTtlMs = 30 * 24 * 60 * 60 * 1000
export const eventsTtlMs = 10 * 60 * 1000
export const eventsKept = 1_000
export const tasksTtlMs = 7 * 24 * 60 * 60 * 1000
export const tasksKept = 1_000
export const bridgedTaskCountTtlMs = 24 * 60 * 60 * 1000
/** The number of configuration versions of the admin API that are stored and can be restored. */
export const versionsKept = 100
/** The versions of each tenant that are stored in addition, however often other tenants change. */
export const versionsPerTenant = 20
/** The most removed documents and lists of kill switches whose versions are kept. */
export const removedNamesKept = 1_000
export const tombstoneTtlMs = 24 * 60 * 60 * 1000
export const requestTtlMs = 24 * 60 * 60 * 1000
/** How long the usage counts of a tenant for a day are kept, in milliseconds. */
export const usageTtlMs = 63 * 24 * 60 * 60 * 1000
/** The most processes whose usage counts of one day are kept. */
export const usageProcessesKept = 500
/** The most grants of a tenant that the admin API lists, the latest ones. */
export const grantsListed = 20_000
/** The time to live of data that each use renews: a year and some days, in milliseconds. */
export const yearTtlMs = 400 * 24 * 60 * 60 * 1000
export const healthTtlMs = 60 * 1000

/**
 * SHA-256 in base64url, 43 characters. Of UTF-16: in UTF-8 all unpaired surrogates are one, and two names could meet.
 */
export function digest(part: string): string {
  return hash('sha256', Buffer.from(part, 'utf16le'), 'base64url')
}

/** Different kinds or parts, different keys: digests have one length, and kinds hold no colon. */
export function key(kind: Kind, ...parts: readonly string[]): string {
  return [kind, ...parts.map(digest)].join(':')
}

const keyMaker =
  <Made extends Kind>(kind: Made) =>
  (...parts: Named<(typeof keyTable)[Made]>): string =>
    key(kind, ...parts)

/**
 * The keys of the sessions of one endpoint. The tenant is part of the key, so another tenant with the same id reads
 * nothing. The id is there as its digest only: whoever can read the store, or a log of its keys, cannot use a session.
 */
export function sessionKeys(tenant: string, endpoint: string): (sessionId: string) => string {
  const prefix = key('session', tenant, endpoint)
  return (sessionId) => `${prefix}:${digest(sessionId)}`
}

export const sessionHomeKey = keyMaker('session-home')
export const sessionKeeperKey = keyMaker('session-keeper')
export const upstreamSessionKey = keyMaker('upstream-session')
export const upstreamSessionsKey = keyMaker('upstream-sessions')
export const sessionEndsKey = keyMaker('session-ends')
export const openSessionsKey = keyMaker('open-sessions')
export const tenantsKey = key('tenants')
export const principalSeatKey = keyMaker('principal-seat')
export const tenantSeatKey = keyMaker('tenant-seat')
export const listingKey = keyMaker('listing')
export const pastListingKey = keyMaker('listing-past')
export const sharedToolsKey = keyMaker('shared-tools')
export const sharedToolsOfKey = keyMaker('shared-tools-of')
export const eventsKey = keyMaker('events')
export const tasksKey = keyMaker('tasks')
export const bridgedTaskKey = keyMaker('bridged-task')
export const bridgedTaskCountKey = keyMaker('bridged-task-count')
export const auditSegmentKey = keyMaker('audit')
export const auditIndexKey = keyMaker('audit-index')
export const auditHeadsKey = keyMaker('audit-heads')
export const auditSigningKey = key('audit-key')
export const controlHeadKey = key('control-head')
export const controlVersionKey = keyMaker('control-version')
export const controlRequestKey = keyMaker('control-request')
export const controlRequestCountKey = keyMaker('control-request-count')
export const consoleSessionKey = keyMaker('console-session')
export const usageKey = keyMaker('usage')
export const usageIndexKey = keyMaker('usage-index')
export const dpopProofKey = keyMaker('dpop-proof')
export const limitKey = keyMaker('limit')
export const loginKey = keyMaker('login')
export const loginGrantKey = keyMaker('login-grant')
export const vaultKeyKey = keyMaker('vault-key')
export const grantKey = keyMaker('grant')
export const grantUsedKey = keyMaker('grant-used')
export const grantIndexKey = keyMaker('grant-index')
export const grantEndsKey = keyMaker('grant-ends')
export const grantClientKey = keyMaker('grant-client')
export const firstIssuersKey = keyMaker('first-issuers')
export const grantPendingKey = keyMaker('grant-pending')
export const grantBegunKey = keyMaker('grant-begun')
export const grantRenewalKey = keyMaker('grant-renewal')
export const signedOutKey = keyMaker('signed-out')
export const exchangedTokenKey = keyMaker('exchanged-token')
export const exchangeTurnKey = keyMaker('exchange-turn')
export const assertionKeysKey = keyMaker('assertion-keys')
export const sealKeyKey = key('seal-key')
export const healthKey = key('health')
