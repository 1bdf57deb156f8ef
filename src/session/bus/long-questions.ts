// Requests that are too long for one message between processes. Who answers one fetches its text, in parts, from who
// asks: by a request of its own, whose answer is held back, repeated and counted like any other.

import { bytesPerChar } from '../../limits/memory.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { runSteps } from '../../time/turns.ts'
import { busCallCancelled } from './bus-errors.ts'
import type { BusKind, LongQuestion } from './bus-places.ts'
import type { BusRequests } from './bus-requests.ts'
import type { BusHandler, ServedCall } from './bus-server.ts'
import { readTextSteps } from './wire/bus-reading.ts'

/** Ahead of the end of a long text. */
interface TextPart {
  readonly part: string
}

/** Longer texts are said in parts of so many characters: each is sealed, and opened, in one turn. */
const partChars = 1024 * 1024

/**
 * Says a long text, all but its end, ahead of the answer.
 * @returns its end
 * @throws what `refusal` makes, where there is no room for a part
 */
export async function sayInParts(
  text: string,
  notify: ServedCall['notify'],
  refusal: (chars: number) => GatewayError
): Promise<string> {
  let rest = text
  for (; rest.length > partChars; rest = rest.slice(partChars)) {
    const said = notify({ part: rest.slice(0, partChars) } satisfies TextPart)
    if (said === undefined) throw refusal(partChars)
    await said
  }
  return rest
}

/** Gives this process the handlers of both sides. */
export function serveLongQuestions(handlers: Map<BusKind, BusHandler>, requests: BusRequests): void {
  handlers.set('text', async (id, { from, notify, memory }) => {
    const text = requests.textOf(id as string, from)
    if (text === undefined) throw busCallCancelled()
    return await sayInParts(text, notify, (chars) => memory.share.refusal(chars, 'The request'))
  })
  handlers.set('long', async (given, call) => {
    const { kind, id, chars } = given as LongQuestion
    const { memory } = call
    const run = handlers.get(kind)
    if (run === undefined) throw notWhole()
    memory.require(chars * bytesPerChar, 'The request')
    const text = await fetchText(requests, id, call)
    if (text.length !== chars) throw notWhole()
    const question = await runSteps(readTextSteps(text, memory), memory.share)
    return await run(question, call)
  })
}

/** @throws GatewayError too_many, unavailable: nothing of the request was begun */
async function fetchText(
  { request }: BusRequests,
  id: string,
  { from, signal, memory: { share } }: ServedCall
): Promise<string> {
  const parts: string[] = []
  const notify = (said: unknown): void => void parts.push((said as TextPart).part)
  try {
    const end = (await request(from, 'text', share, id, { notify, signal })) as string
    return parts.join('') + end
  } catch (error) {
    // It is cancelled where this process stops, too, which its caller did not ask for.
    throw error instanceof GatewayError && error.code === 'too_many' ? error : notWhole()
  }
}

const notWhole = (): GatewayError =>
  new GatewayError(
    'unavailable',
    'The request did not arrive whole at its process, and was not begun. Retry in a second.',
    {
      headers: { 'Retry-After': '1' }
    }
  )
