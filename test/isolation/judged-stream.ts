// A stream of events that is open for long: searched as it comes, and not kept.

import { open, type Sent } from '../kit/client.ts'
import type { House, World } from './world.ts'

export interface JudgedStream {
  readonly status: number
  /** How much it has said, in characters. */
  said(): number
  /** Of its latest event that has one. */
  lastId(): string | undefined
  close(): void
}

/** Of an event that comes in pieces, more than enough. */
const keptChars = 1_000

export async function openJudged({ search }: World, house: House, url: string, sent: Sent): Promise<JudgedStream> {
  const stop = new AbortController()
  const response = await open(url, { ...sent, signal: stop.signal })
  const judge = search.pieces('stream of events', house)
  let [said, rest, lastId] = [0, '\n', undefined as string | undefined]
  response.setEncoding('latin1').on('data', (piece: string) => {
    judge(piece)
    said += piece.length
    const text = rest + piece
    const at = text.lastIndexOf('\nid: ')
    lastId = /^\nid: (\S+)\n/.exec(text.slice(Math.max(0, at)))?.[1] ?? lastId
    rest = text.slice(-keptChars)
  })
  response.on('error', () => {}) // Our own end, or that of the gateway.
  return { status: response.statusCode ?? 0, said: () => said, lastId: () => lastId, close: () => stop.abort() }
}
