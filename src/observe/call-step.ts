// What happens between a call and its answer: a further round at its upstream, a server request until its response, a
// notification to its client, or that it was sent to its upstream again.

export interface CallStep {
  readonly kind: 'round' | 'asked' | 'notified' | 'again'
  /** The method; of a round its upstream; why it was sent again. */
  readonly name: string
  /** Milliseconds from its start. */
  readonly at: number
  /** How long it took; undefined: it was at once, or is not over. */
  ms?: number
  /** To a server request. `answered`: without an action of the person; `failed`: with an error, or not at all. */
  answer?: 'accept' | 'decline' | 'cancel' | 'answered' | 'failed'
}
