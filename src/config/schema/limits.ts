// The schema of `limits`: what one caller, one session or the whole process may use.

import { closedObject, hourMs, integer, minuteMs } from './parts.ts'
import { Type } from './type.ts'

export const LimitsSchema = closedObject(
  {
    memoryBytes: Type.Optional(
      Type.Integer({
        minimum: 268_435_456,
        maximum: 1_099_511_627_776,
        description:
          'How much memory the process may use, in bytes (its resident set). What requests, answers, streams and ' +
          'subscriptions hold is counted and refused beyond it: one tenant may hold half of what the gateway itself ' +
          'leaves, one caller half of that. Default: three quarters of the memory of the container or machine; less ' +
          'where the heap of Node (`--max-old-space-size`) is smaller.'
      })
    ),
    bodyBytes: integer(1024, 268_435_456, 4_194_304, 'Largest request body, in bytes.'),
    sessionIdleMs: integer(100, 30 * 24 * hourMs, 30 * minuteMs, 'A session ends after this time without a request.'),
    sessionMaxMs: integer(100, 365 * 24 * hourMs, 24 * hourMs, 'A session ends after this time even if it is in use.'),
    sessionsPerPrincipal: integer(
      1,
      1_000_000,
      1000,
      'Sessions that one caller may have at once. Revision 2026-07-28 has no sessions: there it limits the sets ' +
        'of upstream sessions of one caller at one gateway process (docs/modern-to-legacy.md), and a caller may ' +
        'have 100 listen streams.'
    ),
    callsPerSession: integer(
      1,
      100_000,
      256,
      'Requests that may run at once for one session (at one gateway process, where its requests come to several), ' +
        'or for one caller of revision 2026-07-28, which has no sessions, at one gateway process.'
    ),
    requestsPerSecondPerPrincipal: integer(
      1,
      1_000_000,
      1000,
      'HTTP requests that one caller (issuer and subject) may send to one gateway process, for long; five times as ' +
        'many may come at once after a pause. Each message of a batch counts. Those beyond are refused with 429, ' +
        'after a quarter of a second.'
    ),
    requestsPerSecondPerTenant: integer(1, 1_000_000, 2000, 'The same for all callers of one tenant together.'),
    bodyBytesPerSecondPerPrincipal: integer(
      1024,
      1_099_511_627_776,
      16_777_216,
      'Bytes a second that one caller may send to one gateway process in request bodies of more than 32 KiB, for ' +
        'long; those of one second may come at once after a pause. What is beyond is not refused: it is read later, ' +
        'as the limit allows; where that would be after `queueMs`, or after 15 s, it is refused with 429.'
    ),
    bodyBytesPerSecondPerTenant: integer(
      1024,
      1_099_511_627_776,
      33_554_432,
      'The same for all callers of one tenant together.'
    ),
    sessionsPerSecondPerPrincipal: integer(
      1,
      1_000_000,
      100,
      'Sessions that one caller may open a second at one gateway process, for long; those of one second may come at ' +
        'once after a pause. The next ones wait, and are refused with 429 where that would be for more than `queueMs`.'
    ),
    sessionsPerSecondPerTenant: integer(1, 1_000_000, 200, 'The same for all callers of one tenant together.'),
    queueMs: integer(
      10,
      5 * minuteMs,
      10_000,
      'How long a request may wait for its turn before it is begun, while the gateway has more to do than it can. ' +
        'After that it is refused with 503 and `Retry-After`. Tenants and callers take turns: who sends few waits ' +
        'shortly. Long bodies and new sessions beyond their rate wait no longer either; then 429.'
    ),
    callsPerPrincipal: integer(
      1,
      1_000_000,
      1_024,
      'Requests that may run at once for one person (issuer and subject) at one gateway process, over all sessions ' +
        'and clients.'
    ),
    callsPerTenant: integer(
      1,
      1_000_000,
      4_096,
      'Requests that may run at once for all callers of one tenant at one gateway process.'
    ),
    batchMessages: integer(1, 10_000, 50, 'Messages in one JSON-RPC batch (revision 2025-03-26 only).'),
    processes: integer(
      1,
      100_000,
      256,
      'stdio processes that may run at once at one gateway process, over all tenants. Half of them are kept for ' +
        'tenants that have few: each is sure of an equal part of that half, but of one at least while there are any. ' +
        'Calls leave an eighth to lists.'
    ),
    processesPerTenant: integer(
      1,
      100_000,
      128,
      'stdio processes that may run at once for the callers of one tenant at one gateway process. One caller ' +
        '(issuer and subject) may have three quarters of them, but always at least one. Processes of upstreams with ' +
        '`isolation: shared` are not counted, nor are those that lists are read from: one per upstream, and at most ' +
        '64 per tenant for clients that declare capabilities.'
    ),
    processBytesPerTenant: Type.Optional(
      Type.Integer({
        minimum: 16_777_216,
        maximum: 1_099_511_627_776,
        description:
          'How much memory the stdio processes of one tenant may take together at one gateway process, in ' +
          'bytes, with all that they have started; shared memory counts once, what is read from files does not. ' +
          'Beyond it the largest server is ended, and the calls that it ran fail. Read once a second from /proc ' +
          '(Linux). Default: half of the memory of the container or machine.'
      })
    ),
    coldStartMs: integer(
      0,
      5 * minuteMs,
      1500,
      'How long initialize and list requests wait for upstreams whose lists are not known yet.'
    ),
    readyDelayMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 10 * minuteMs,
        description:
          'How long the gateway still serves after SIGTERM, while `/health/ready` answers 503 already: until then ' +
          'load balancers have heard of it, and send nothing more. Default: 5000; 0 where listen.host is ' +
          'a loopback address.'
      })
    ),
    drainMs: integer(
      0,
      hourMs,
      24_000,
      'How long shutdown waits for running calls, from SIGTERM on: `readyDelayMs` is part of it.'
    ),
    pageSize: integer(1, 100_000, 1000, 'Entries on one page of a list.'),
    streamMs: integer(
      0,
      hourMs,
      0,
      'How long one connection may stream the response of a call. After that it is closed, and the client is told ' +
        'to reconnect for the rest (clients of 2025-11-25 and later). For proxies that limit how long a response ' +
        'may take. 0: no limit.'
    )
  },
  { description: 'What one caller, one session or the whole process may use. Milliseconds and bytes.' }
)
