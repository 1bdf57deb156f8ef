// Reads long messages of other processes in steps, at the expense of whom they are for, so that nobody else waits for
// that. What follows on the same request waits until they are read; everything else does not.

import { parseOwnJsonSteps } from '../../../protocol/json.ts'
import { runSteps } from '../../../time/turns.ts'
import type { BusMessage, BusMessages } from './bus-messages.ts'
import type { BusCaller } from '../bus-places.ts'

/** Characters from which on a message is read in steps. */
const longChars = 131_072

/** What a long message says of itself at its beginning. */
export interface BusHead extends BusMessage {
  readonly at: number
  readonly n: number
  readonly steadyAt?: number | undefined
  /** Reads all of it. */
  readonly text: string
}

const string = '"((?:[^"\\\\]|\\\\.){0,1024})"'
const head = new RegExp(
  `^\\{"from":${string},"at":(\\d+),"n":(\\d+)(?:,"steadyAt":(\\d+))?,"word":"(\\w+)","id":${string},`
)
const whose = new RegExp(`"whose":\\{"tenant":${string},"caller":${string}\\}`)
/** Within so many characters of a question stands for whom it is. */
const whoseChars = 4_096

/** @returns undefined where the text is short, or none of one message: it is read at once */
export function headOf(text: string): BusHead | undefined {
  if (text.length <= longChars) return undefined
  const [found, from = '', at, n, steadyAt, word, id = ''] = head.exec(text) ?? []
  // What is told of no request is read at once.
  if (found === undefined || id === '') return undefined
  return {
    from: unescaped(from),
    at: Number(at),
    n: Number(n),
    steadyAt: steadyAt === undefined ? undefined : Number(steadyAt),
    word: word as BusMessage['word'],
    id: unescaped(id),
    text
  }
}

const unescaped = (part: string): string => JSON.parse(`"${part}"`) as string

/**
 * @param receive takes messages, those of one request in their order. Never throws
 * @param sent for whom an answer is, by the id of its request
 */
export function createReading(
  receive: (message: BusMessage) => void,
  sent: { get(id: string): { readonly whose: BusCaller } | undefined },
  trySend: BusMessages['trySend']
) {
  /** The last that is being read, by its request. */
  const reading = new Map<string, Promise<void>>()

  function readerOf({ word, id, text }: BusHead): BusCaller {
    const [, tenant = '', caller = ''] = (word === 'question' && whose.exec(text.slice(0, whoseChars))) || []
    const asked = { tenant: unescaped(tenant), caller: unescaped(caller) }
    return word === 'question' ? asked : (sent.get(id)?.whose ?? asked)
  }

  return {
    /** Takes one that came. Rejects never; one that cannot be read is dropped: its request ends by time. */
    take(message: BusMessage | BusHead, onFault: (fault: unknown) => void): void {
      const { id } = message
      const before = reading.get(id)
      // Its sender need not wait for the end of the reading to know that it has come.
      if ('text' in message && message.word === 'question') trySend(message.from, 'beat', id)
      if (before === undefined && !('text' in message)) return receive(message)
      const read = async (): Promise<void> => {
        const whole = 'text' in message ? runSteps(parseOwnJsonSteps(message.text), readerOf(message)) : message
        const [now] = await Promise.all([whole, before])
        receive(now as BusMessage)
      }
      const done = read()
        .catch(onFault)
        .finally(() => {
          if (reading.get(id) === done) reading.delete(id)
        })
      reading.set(id, done)
    }
  }
}
