// The `limits` part of the configuration: what one caller, one session or the whole process may use.

import { Type } from 'typebox'

import type { Limits } from '../snapshot.ts'

const MiB = 1024 * 1024
const second = 1000
const minute = 60 * second
const hour = 60 * minute

export const limitDefaults = {
  bodyBytes: 4 * MiB,
  sessionIdleMs: 30 * minute,
  sessionMaxMs: 24 * hour,
  sessionsPerPrincipal: 1000,
  callsPerSession: 256,
  batchMessages: 50,
  processes: 256,
  processesPerTenant: 128,
  coldStartMs: 1500,
  drainMs: 30 * second,
  pageSize: 1000,
  streamMs: 0
} as const satisfies Limits

const limit = (name: keyof Limits, minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, default: limitDefaults[name], description }))

export const LimitsSchema = Type.Object(
  {
    bodyBytes: limit('bodyBytes', 1024, 256 * MiB, 'Largest request body, in bytes.'),
    sessionIdleMs: limit('sessionIdleMs', 100, 30 * 24 * hour, 'A session ends after this time without a request.'),
    sessionMaxMs: limit('sessionMaxMs', 100, 365 * 24 * hour, 'A session ends after this time even if it is in use.'),
    sessionsPerPrincipal: limit(
      'sessionsPerPrincipal',
      1,
      1_000_000,
      'Sessions that one caller may have at once. Revision 2026-07-28 has no sessions: there it limits the sets ' +
        'of upstream sessions of one caller at one gateway process (docs/modern-to-legacy.md), and a caller may ' +
        'have 100 listen streams.'
    ),
    callsPerSession: limit(
      'callsPerSession',
      1,
      100_000,
      'Requests that may run at once for one session, or for one caller of revision 2026-07-28, which has no sessions.'
    ),
    batchMessages: limit('batchMessages', 1, 10_000, 'Messages in one JSON-RPC batch (revision 2025-03-26 only).'),
    processes: limit('processes', 1, 100_000, 'stdio processes that may run at once, over all tenants.'),
    processesPerTenant: limit(
      'processesPerTenant',
      1,
      100_000,
      'stdio processes that may run at once for the callers of one tenant. One caller (issuer and subject) may ' +
        'have three quarters of them, but always at least one. Processes of upstreams with `isolation: shared` are ' +
        'not counted, nor are those that lists are read from: one per upstream, and at most 64 per tenant for ' +
        'clients that declare capabilities.'
    ),
    coldStartMs: limit(
      'coldStartMs',
      0,
      5 * minute,
      'How long initialize and list requests wait for upstreams whose lists are not known yet.'
    ),
    drainMs: limit('drainMs', 0, hour, 'How long shutdown waits for running calls.'),
    pageSize: limit('pageSize', 1, 100_000, 'Entries on one page of a list.'),
    streamMs: limit(
      'streamMs',
      0,
      hour,
      'How long one connection may stream the response of a call. After that it is closed, and the client is told ' +
        'to reconnect for the rest (clients of 2025-11-25 and later). For proxies that limit how long a response ' +
        'may take. 0: no limit.'
    )
  },
  {
    additionalProperties: false,
    description: 'What one caller, one session or the whole process may use. Milliseconds and bytes.'
  }
)
