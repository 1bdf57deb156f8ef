// What the steps of the tour have in common: who visits whom, and what comes back.

import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Revision } from '../../../src/protocol/messages.ts'
import type { Types } from './sdks.ts'

export interface Tour {
  readonly client: Client
  readonly types: typeof Types
  /** The newest revision that the client, and that the server, knows. */
  readonly clientKnows: Revision
  readonly serverKnows: Revision
  /** How a name or a URI of the server is called at this endpoint. */
  name(own: string): string
  uri(own: string): string
}

export interface Step {
  readonly name: string
  /** Rejects with what is wrong. */
  run(): Promise<void>
}

export interface Heard {
  readonly method: string
  readonly params?: Record<string, unknown>
}

export type Result = Awaited<ReturnType<Client['callTool']>>

/** The text of a result, which has one. */
export const textOf = (result: Result): string => (result.content as Array<{ text: string }>)[0]?.text ?? ''
