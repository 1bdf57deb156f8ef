// Reads long messages of other processes in steps, at the expense of whom they are for, so that nobody else waits for
// that. What follows on the same request waits until they are read, and so does what is told under the same name;
// everything else does not.

import { bytesPerValue, jsonSizeSteps } from '../../../limits/limits.ts'
import { bytesPerChar, type HeldMemory, holdMemory, type MemoryAccount } from '../../../limits/memory.ts'
import { parseOwnJsonSteps } from '../../../protocol/json.ts'
import { GatewayError } from '../../../protocol/messages.ts'
import { runSteps, type Steps } from '../../../time/turns.ts'
import { encodeError } from '../bus-errors.ts'
import type { BusCaller } from '../bus-places.ts'
import type { LeftOut } from '../left-out.ts'
import type { BusMessage, BusMessages } from './bus-messages.ts'

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
/** Within so many characters of what is new to this process stands whose it is. */
const whoseChars = 4_096

/** @returns undefined where the text is short, or none of one message: it is read at once */
export function headOf(text: string): BusHead | undefined {
  if (text.length <= longChars) return undefined
  const [found, from = '', at, n, steadyAt, word, id = ''] = head.exec(text) ?? []
  if (found === undefined) return undefined
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
 * @param receive takes messages, those of one request in their order, with what was taken for them. Never throws
 * @param sent for whom an answer is, by the id of its request
 */
export function createReading(
  receive: (message: BusMessage, memory?: HeldMemory) => void,
  sent: { get(id: string): { readonly whose: BusCaller } | undefined },
  trySend: BusMessages['trySend'],
  { memory, leftOut }: { readonly memory: Pick<MemoryAccount, 'share'>; readonly leftOut: LeftOut }
) {
  /** The last that is being read, of those that keep their order. */
  const reading = new Map<string, Promise<void>>()

  function readerOf({ word, id, text }: BusHead): BusCaller {
    const own = word === 'question' || word === 'told'
    const [, tenant = '', caller = ''] = (own && whose.exec(text.slice(0, whoseChars))) || []
    const asked = { tenant: unescaped(tenant), caller: unescaped(caller) }
    return own ? asked : (sent.get(id)?.whose ?? asked)
  }

  async function readLong(head: BusHead, before: Promise<void> | undefined): Promise<void> {
    const { word, id, from } = head
    const reader = readerOf(head)
    const held = holdMemory(memory.share(reader.tenant, reader.caller))
    const release = held.retain()
    try {
      reserve(held, word, head.text.length * bytesPerChar)
      // Its sender need not wait for the end of the reading to know that it has come.
      if (word === 'question') trySend(from, 'beat', id)
      const message = await runSteps(readSteps(head, held), reader)
      await before
      receive(message, held)
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault
      if (word === 'question') trySend(from, 'error', id, encodeError(fault))
      else leftOut(reader)
    } finally {
      release()
    }
  }

  return {
    /** Takes one that came. Rejects never; one that cannot be read is dropped: its request ends by time. */
    take(message: BusMessage | BusHead, onFault: (fault: unknown) => void): void {
      const line = `${message.from} ${message.id}`
      const before = reading.get(line)
      if (before === undefined && !('text' in message)) return receive(message)
      const read =
        'text' in message ? readLong(message, before) : (before ?? Promise.resolve()).then(() => receive(message))
      // One that cannot be read does not let the next overtake those before it.
      const done = Promise.all([read.catch(onFault), before]).then(() => {
        if (reading.get(line) === done) reading.delete(line)
      })
      reading.set(line, done)
    }
  }
}

/**
 * Of what is new to this process more is refused than there is memory for. The answers that it waits for are counted.
 * @throws GatewayError too_many
 */
function reserve(held: HeldMemory, word: BusMessage['word'], bytes: number): void {
  if (word === 'question' || word === 'told') held.require(bytes, 'The request')
  else held.set(held.bytes + bytes)
}

function* readSteps({ word, text }: BusHead, held: HeldMemory): Steps<BusMessage> {
  const values = (count: number): void => reserve(held, word, count * bytesPerValue)
  const message = (yield* parseOwnJsonSteps(text, values)) as BusMessage
  held.set(yield* jsonSizeSteps(message.body))
  return message
}

/**
 * The value of a text of a request, which takes the place of the text in what is held.
 * @throws GatewayError too_many
 */
export function* readTextSteps(text: string, held: HeldMemory): Steps<unknown> {
  const value = yield* parseOwnJsonSteps(text, (values) => reserve(held, 'question', values * bytesPerValue))
  held.set(yield* jsonSizeSteps(value))
  return value
}
