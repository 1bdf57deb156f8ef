// Messages of one turn of the event loop to one process leave together: to seal, publish, receive and open each by
// itself costs more than what it says.

import { nextTurn } from '../../../time/turns.ts'

/** Of messages that leave together. A longer one leaves by itself. */
const maxBatchChars = 256 * 1024

interface Batch {
  readonly texts: string[]
  chars: number
  readonly sent: PromiseWithResolvers<number>
}

/** @param write sends texts to a process, in their order, and says how many listen */
export function createBatches(write: (to: string, texts: readonly string[]) => Promise<number>) {
  const waiting = new Map<string, Batch>()

  function leave(to: string, { texts, sent }: Batch): void {
    waiting.delete(to)
    write(to, texts).then(sent.resolve, sent.reject)
  }

  return {
    /** @returns how many listen. Rejects as `write` does */
    add(to: string, text: string): Promise<number> {
      let batch = waiting.get(to)
      if (batch !== undefined && batch.chars + text.length > maxBatchChars) {
        leave(to, batch)
        batch = undefined
      }
      if (batch === undefined) {
        const made: Batch = { texts: [], chars: 0, sent: Promise.withResolvers() }
        batch = made
        waiting.set(to, made)
        void nextTurn().then(() => waiting.get(to) === made && leave(to, made))
      }
      batch.texts.push(text)
      batch.chars += text.length
      return batch.sent.promise
    },
    flush(): void {
      for (const [to, batch] of waiting) leave(to, batch)
    }
  }
}
