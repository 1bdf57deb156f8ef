// Serializes long messages to an upstream in steps, so that no turn of the event loop is long. Short messages may
// overtake a long one that is being serialized.

import { isLongText, type JsonText } from '../../protocol/json-text.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import type { OpenTable } from '../../limits/open-table.ts'
import { type JsonObject, type Request, requestMessage } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import type { RpcClientOptions } from './transport.ts'

const always = (): boolean => true

/** @param calls the open calls by id: the serialization of a call that is not among them stops */
export function createTextSender(
  { link, transport }: Pick<RpcClientOptions, 'link' | 'transport'>,
  calls: Pick<OpenTable<unknown>, 'has'>
) {
  /** The ids of requests that are being serialized. */
  const unsent = new Set<number>()

  function* writeSteps(message: JsonObject, isWanted: () => boolean): Steps<JsonText | undefined> {
    const steps = longTextSteps(message, transport.changePart)
    for (let step = steps.next(); isWanted(); step = steps.next()) {
      if (step.done === true) return step.value
      yield
    }
    return undefined
  }

  async function sendLong(message: JsonObject, isWanted: () => boolean, send: (text: JsonText) => void): Promise<void> {
    const text = await runSteps(writeSteps(message, isWanted), link.memory)
    if (text !== undefined && isWanted()) send(text)
  }

  return {
    /** @throws GatewayError if it was not sent. @param fail called instead if it was to be sent later */
    request(id: number, request: Request, client: Client, fail: (id: number, error: Error) => void): void {
      const message = requestMessage(id, request)
      if (!isLongText(message)) return transport.request(id, JSON.stringify(message), request, client)
      unsent.add(id)
      const send = (text: JsonText): void => {
        unsent.delete(id)
        transport.request(id, text, request, client)
      }
      sendLong(message, () => calls.has(id), send)
        .catch((error: unknown) => fail(id, error as Error))
        .finally(() => unsent.delete(id))
    },
    /** Sends a notification or a response; a client's response to a server request may be long. */
    post(message: JsonObject, lost: (() => void) | undefined): void {
      if (!isLongText(message)) return transport.post(JSON.stringify(message), lost)
      // An unhandled rejection would end the process.
      sendLong(message, always, (text) => transport.post(text, lost)).catch(() => lost?.())
    },
    /** Whether nothing of the request was sent yet: then no cancellation is needed. */
    isUnsent: (id: number): boolean => unsent.has(id)
  }
}
