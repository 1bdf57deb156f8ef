// Requests that must not be done twice (draft-ietf-httpapi-idempotency-key-header): the answer of each is kept for a
// day, sealed, for whoever sends it again because the first answer was lost on the way.

import { stringOrNone } from '../config/shape.ts'
import { isObject } from '../protocol/messages.ts'
import { controlRequestCountKey, controlRequestKey, requestTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { ControlError } from './control-error.ts'

/** Of one admin key. */
const requestsPerDay = 1_000
/** As long as a process may take for one that does not say; after its death the request can be sent again. */
const underWayMs = 60_000
/** In characters; of a longer one only that it was given is kept. */
const maxKeptAnswer = 65_536
/** In characters. */
export const maxIdempotencyKey = 255

const purpose = 'control-request'

export interface RepeatableRequest {
  /** Of the admin key. */
  readonly sender: string
  /** What the sender has named it. */
  readonly key: string
  /** Digest of all that is asked. */
  readonly digest: string
  /** As long as a process may take for it. */
  readonly timeoutMs?: number | undefined
}

export function createIdempotency({ store, sealer }: { readonly store: Store; readonly sealer: Sealer }) {
  return {
    /**
     * @param run gives the answer as JSON
     * @returns that of the first time. @throws ControlError conflict, limit_reached; GatewayError unavailable
     */
    async once(
      { sender, key, digest, timeoutMs = underWayMs }: RepeatableRequest,
      run: () => Promise<string>
    ): Promise<string> {
      if (key === '' || key.length > maxIdempotencyKey)
        throw new ControlError(
          'conflict',
          'The Idempotency-Key cannot be used.',
          `Send 1 to ${maxIdempotencyKey} characters, such as a UUID.`
        )
      const place = controlRequestKey(sender, key)
      const known = await store.get(place)
      if (known !== undefined) return answerIn(known)
      if ((await store.count(controlRequestCountKey(sender), 1, requestTtlMs)) > requestsPerDay)
        throw new ControlError(
          'limit_reached',
          `This key has sent more than ${requestsPerDay} requests with an Idempotency-Key today.`,
          'Send them without one.'
        )
      const underWay = record()
      if (!(await store.set(place, underWay, { ttlMs: timeoutMs, when: 'absent' })))
        return answerIn((await store.get(place)) ?? '')
      let answer: string
      try {
        answer = await run()
      } catch (error) {
        // It was refused: sent again, it is judged again.
        await store.delete(place, { is: underWay })
        throw error
      }
      await store.set(place, record(answer.length <= maxKeptAnswer ? answer : ''), { ttlMs: requestTtlMs })
      return answer

      /** Sealed with the digest: whoever reads the store could otherwise try out what may have been asked. */
      function record(done?: string): string {
        return sealer.seal(purpose, [sender, key], JSON.stringify({ digest, done }))
      }

      function answerIn(text: string): string {
        const opened = sealer.open(purpose, [sender, key], text)
        const value: unknown = opened === undefined ? undefined : JSON.parse(opened)
        const kept = isObject(value) ? value : {}
        if (kept['digest'] !== digest && kept['digest'] !== undefined)
          throw new ControlError(
            'conflict',
            'Another request has come with this Idempotency-Key.',
            'Send each request with a key of its own.'
          )
        const done = stringOrNone(kept['done'])
        if (done === '')
          throw new ControlError(
            'conflict',
            'This request was done before, and its answer was too long to be kept.',
            'It is not done again. Send another Idempotency-Key to have it done once more.'
          )
        if (done !== undefined) return done
        throw new ControlError('conflict', 'The same request is being done right now.', 'Ask again in a second.')
      }
    }
  }
}
