// What the suite finds missing where a gateway stands between two eras, and why nothing between them could make up for
// it. Each run is held against this list in both directions: what is not in it fails, and so does what is in it and is
// not found any more.

import type { Requirements } from './reference.ts'

export interface Gap {
  readonly scenario: string
  /** Those that fail, warn, or are not reached because of one that fails. */
  readonly checks: readonly string[]
  readonly reason: string
}

/** By the requirement set; the upstream speaks the other revision only. */
export const gaps: Readonly<Record<Requirements, readonly Gap[]>> = {
  '2025-11-25': [],
  '2026-07-28': [
    {
      scenario: 'server-stateless',
      checks: ['sep-2575-server-rejects-undeclared-capability', 'sep-2575-missing-capability-http-400'],
      reason:
        'A server of 2025-11-25 has no error that names a capability it misses: its tool fails in its own words, and the gateway invents no -32021.'
    },
    {
      scenario: 'input-required-result-basic-elicitation',
      checks: ['sep-2322-elicitation-incomplete', 'sep-2322-elicitation-complete'],
      reason:
        'The scenario wants the key `user_name`. A server request of 2025-11-25 has no key, so the gateway gives it one of its own; with that one the call goes on, as in the other scenarios.'
    },
    {
      scenario: 'input-required-result-ignore-extra-params',
      checks: ['sep-2322-ignore-unexpected-params'],
      reason:
        'It answers before it was asked, and without a `requestState`. There is no call yet that could take the answer: the server has to ask first.'
    },
    {
      scenario: 'tasks-required-task-error',
      checks: ['sep-2663-server-returns-missing-capability-when-required'],
      reason:
        'Not scored. It wants a client without tasks to be refused; the gateway serves it, by making the task and waiting for its end.'
    },
    {
      scenario: 'tasks-mrtr-composition',
      checks: ['sep-2663-mrtr-synchronous-before-task-creation'],
      reason:
        'Not scored. Whether a call is a task, its request says in 2025-11-25; such a server cannot ask first and become a task then. It asks as a task.'
    }
  ]
}

/** Of the client half, none of which is scored. */
export const clientGaps: readonly Gap[] = [
  {
    scenario: 'auth/dpop',
    checks: ['sep-1932-client-token-request-proof', 'sep-1932-client-dpop-auth-scheme', 'sep-1932-client-fresh-proof'],
    reason: 'Tokens for upstreams are bearer tokens; the gateway does not bind them to a key.'
  },
  {
    scenario: 'auth/dpop-nonce',
    checks: [
      'sep-1932-client-token-request-proof',
      'sep-1932-client-dpop-auth-scheme',
      'sep-1932-client-fresh-proof',
      'sep-1932-client-as-nonce',
      'sep-1932-client-rs-nonce'
    ],
    reason: 'As above.'
  },
  {
    scenario: 'auth/wif-jwt-bearer',
    checks: ['wif-grant-type'],
    reason: 'The gateway has no workload identity of its own to present.'
  }
]
