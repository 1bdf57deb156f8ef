// How a client of MCP is told that its body comes in too many tiny pieces.

import type { ServerResponse } from 'node:http'
import { CountedPieces, tooManyPieces } from '../limits/counted-pieces.ts'
import { GatewayError } from '../protocol/messages.ts'
import { sendError } from './reply.ts'

export class CountedRequest extends CountedPieces {
  protected override refuse(response: ServerResponse): void {
    const error = new GatewayError('too_large', `${tooManyPieces} Send it in larger ones.`)
    sendError(response, error, '', { Connection: 'close' }, null)
  }
}
