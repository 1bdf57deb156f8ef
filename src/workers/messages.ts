// Every message between a worker and its primary: `serve --workers N` runs a primary process, which runs no gateway,
// and workers, each of which runs a whole one.

import type { FixedSettings } from '../config/reload/fixed-settings.ts'
import type { MetricsForm } from '../observe/metrics/metrics-text.ts'
import type { Channel } from './channel.ts'

/** What a worker is told of itself when it starts. */
export interface WorkerStart {
  /** From 1 on. A worker that replaces another one has its number. */
  readonly number: number
  /** How many there are. */
  readonly count: number
  /** How much memory this process may use, in bytes. */
  readonly memoryBytes: number
  /** Whether it says what is said once at the start. */
  readonly isSpeaker: boolean
  /** Whether what the store of the primary keeps outlives it; undefined: Redis, which each worker opens. */
  readonly lasting: boolean | undefined
  /** What the gateway was started with: whatever the file says by now, all workers keep it. */
  readonly fixed: FixedSettings
}

/** Why a call of the store failed. */
export interface StoreFault {
  readonly message: string
  readonly cause?: string
  /** Whether it is GatewayError `unavailable`, and no fault of ours. */
  readonly isUnavailable: boolean
}

export type ToPrimary =
  /** The first message of a worker, which is answered by `start`. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'listening'; readonly url: string }
  /** It could not start: what is said of it. */
  | { readonly kind: 'failed'; readonly words: string }
  /** It got a signal to end, and does not obey it: the primary may have got it, too. */
  | { readonly kind: 'signalled' }
  /** A call of the store. @see Store */
  | { readonly kind: 'store'; readonly id: number; readonly operation: string; readonly args: readonly unknown[] }
  /** What this process is called among the processes of the gateway. */
  | { readonly kind: 'node'; readonly node: string }
  /** A connection, with its socket, for the worker of that name. Answered by `given`. */
  | ({ readonly kind: 'give'; readonly to: string } & ConnectionOffer)
  /** The answer to `take`. */
  | { readonly kind: 'taken'; readonly id: number; readonly isTaken: boolean }

  /** The metrics of all other workers are asked for: answered by many `collectedPart` and one `collected`. */
  | { readonly kind: 'collect'; readonly id: number; readonly form: MetricsForm }
  /** The answer to `tellMetrics`: empty after the last part; undefined where there is no more of it than that. */
  | { readonly kind: 'metrics'; readonly id: number; readonly text?: string | undefined }

export type ToWorker =
  | ({ readonly kind: 'start' } & WorkerStart)
  /** Drain and end. */
  | { readonly kind: 'stop' }
  /** Read the configuration again. */
  | { readonly kind: 'reload' }
  /** The answer to `store`. */
  | { readonly kind: 'stored'; readonly id: number; readonly value?: unknown; readonly fault?: StoreFault }
  /** A message on a channel of the store. */
  | { readonly kind: 'published'; readonly channel: string; readonly message: string }
  /** Messages on channels of the store were left out, because this worker did not read. */
  | { readonly kind: 'lost' }
  /** The next part of its metrics is asked for, with an id that all parts have in common. */
  | { readonly kind: 'tellMetrics'; readonly id: number; readonly form: MetricsForm }
  /** No more parts are asked for. */
  | { readonly kind: 'endMetrics'; readonly id: number }
  | { readonly kind: 'collectedPart'; readonly id: number; readonly worker: number; readonly text: string }
  /** What came of that worker is no good, and no more of it comes. */
  | { readonly kind: 'leftOut'; readonly id: number; readonly worker: number }
  /** These workers have told all of theirs. */
  | { readonly kind: 'collected'; readonly id: number; readonly workers: readonly number[] }

  /** What the other workers are called that live. */
  | { readonly kind: 'nodes'; readonly nodes: readonly string[] }
  /** A connection, with its socket. Answered by `taken`. */
  | ({ readonly kind: 'take' } & ConnectionOffer)
  /** The answer to `give`. */
  | { readonly kind: 'given'; readonly id: number; readonly isTaken: boolean }

interface ConnectionOffer {
  readonly id: number
  readonly connection: MovedConnection
  /** When it is too late to take it, by the clock of the machine. */
  readonly until: number
}

/** What goes along with a connection of a client. */
export interface MovedConnection {
  /** How often it has moved so far. */
  readonly moves: number
  /** How many of its requests were answered. */
  readonly requests: number
}

export type WorkerChannel = Channel<ToWorker, ToPrimary>
export type PrimaryChannel = Channel<ToPrimary, ToWorker>

/** What a gateway knows of itself where it is a worker. */
export interface WorkerProcess extends WorkerStart {
  readonly channel: WorkerChannel
}
