// How the scripted modern server answers, and what a request declares.

import type { Id, Json } from './mcp-server.ts'

/** The way back to the sender of one request. */
export interface ModernPeer {
  /** On the response to the request. `status` is of the HTTP response, where it is one and has not begun. */
  reply(message: Json, status?: number): void
  /** Breaks off without an answer: the stream over HTTP, the process over stdio. */
  drop(): void
}

const statuses: Readonly<Record<number, number>> = {
  [-32020]: 400,
  [-32021]: 400,
  [-32022]: 400,
  [-32600]: 400,
  [-32700]: 400,
  [-32601]: 404
}

/** Answers with an error. @returns undefined, as what has no result any more */
export function refuse(
  id: Id | undefined,
  peer: ModernPeer,
  code: number,
  message: string,
  data?: unknown,
  status = statuses[code] ?? 200
): undefined {
  peer.reply(
    {
      jsonrpc: '2.0',
      ...(id === undefined ? {} : { id }),
      error: { code, message, ...(data === undefined ? {} : { data }) }
    },
    status
  )
}

/** The capabilities that a request declares. */
export const declared = (params: Json): Record<string, Json | undefined> =>
  ((params['_meta'] as Json | undefined)?.['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Record<
    string,
    Json | undefined
  >
