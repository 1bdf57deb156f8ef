// Batches of messages, and what may be in them.

import { GatewayError, type Message, type Revision } from '../../protocol/messages.ts'

/**
 * Batches came with 2025-03-26 and went with 2025-06-18.
 * @param revision undefined before it is negotiated
 * @throws GatewayError invalid_request
 */
export function checkBatch(batch: readonly unknown[], revision: Revision | undefined, maxMessages: number): void {
  if (revision !== '2025-03-26')
    throw new GatewayError(
      'invalid_request',
      'This session does not speak revision 2025-03-26, the only one with batches; send one message per request.'
    )
  if (batch.length === 0 || batch.length > maxMessages)
    throw new GatewayError('invalid_request', `A batch has 1 to ${maxMessages} messages.`)
}

type Classified = Message | { readonly kind: 'invalid' }

/** @throws GatewayError invalid_request */
export function refuseInitialize(batch: readonly Classified[]): void {
  if (batch.some((message) => isRequest(message, 'initialize')))
    throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
}

export const isRequest = (message: Classified, method: string): message is Message & { kind: 'request' } =>
  message.kind === 'request' && message.request.method === method
