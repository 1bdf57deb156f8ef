// Long values of the embedded store are written and read in pieces, in turns of the event loop of their own. A row
// refers to the pieces of its value once all of them are in the file; those to which no row refers are swept.

import type { DatabaseSync } from 'node:sqlite'
import { createTurns, type Steps } from '../../time/turns.ts'
import { attempt, type Transactions } from './turns.ts'

/** Characters of a piece, of one to three bytes each. A value of no more stands in its row. */
const pieceLength = 131_072

/** What stands in a row: the value, or how many pieces it has, and which. */
export interface Stored {
  readonly value: string
  readonly pieces: number | null
}

export type Pieces = ReturnType<typeof createPieces>

export const inRow = (value: string): Stored => ({ value, pieces: null })
export const isLong = (value: string): boolean => value.length > pieceLength

export function createPieces(database: DatabaseSync, { write }: Transactions) {
  const push = database.prepare('INSERT INTO piece (id, part, value) VALUES (?, ?, ?)')
  const read = database.prepare('SELECT CAST(value AS BLOB) AS value FROM piece WHERE id = ? AND part = ?')
  const remove = database.prepare(
    'DELETE FROM piece WHERE id = ?1 AND part = (SELECT min(part) FROM piece WHERE id = ?1)'
  )
  // Triggers add those of rows that are deleted, or have another value.
  const addUnused = database.prepare('INSERT INTO unused_pieces (id) VALUES (?) ON CONFLICT DO NOTHING')
  const removeUnused = database.prepare('DELETE FROM unused_pieces WHERE id = ?')
  const findUnused = database.prepare('SELECT min(id) AS id FROM unused_pieces WHERE id < ?')
  const newest = database.prepare(
    'SELECT max((SELECT ifnull(max(id), 0) FROM piece), (SELECT ifnull(max(id), 0) FROM unused_pieces)) AS id'
  )
  let last = Number(newest.get()?.['id'])
  const underWay = new Set<number>()
  const run = createTurns()

  function* writePieces(id: number, value: string, writes: Array<Promise<void>>): Steps {
    const failed: unknown[] = []
    for (let from = 0; from < value.length && failed.length === 0; yield) {
      const piece = value.slice(from, endOfPiece(value, from))
      const written = write(
        () => {
          addUnused.run(id) // With each, as the transaction of the first may fail.
          push.run(id, writes.length, piece)
        },
        { value: piece }
      )
      written.catch((error: unknown) => failed.push(error))
      writes.push(written)
      from += piece.length
    }
  }

  function* readPieces({ value, pieces }: Stored): Steps<string | undefined> {
    let text = ''
    for (let part = 0; part < Number(value); part++) {
      if (part > 0) yield
      const row = attempt(() => read.get(pieces, part))
      if (row === undefined) return undefined
      text += textOf(row['value'])
    }
    return text
  }

  return {
    /**
     * Writes the pieces of a long value.
     * @param isLazy nobody waits for it: of these and of others, each has half of the time
     * @param refer writes the row that refers to them, in one transaction. @returns whether it did
     * @throws GatewayError unavailable
     */
    async write(value: string, isLazy: boolean, refer: (stored: Stored) => boolean): Promise<boolean> {
      const id = ++last
      underWay.add(id)
      try {
        const writes: Array<Promise<void>> = []
        await run(writePieces(id, value, writes), { tenant: isLazy ? 'lazy' : '', caller: '' })
        await Promise.all(writes)
        return await write(() => {
          const isReferred = refer({ value: String(writes.length), pieces: id })
          if (isReferred) removeUnused.run(id)
          return isReferred
        })
      } finally {
        underWay.delete(id)
      }
    },
    /** @returns undefined where its row was deleted, or has another value, and the pieces were swept since then */
    read: async (stored: Stored): Promise<string | undefined> =>
      await run(readPieces(stored), { tenant: '', caller: '' }),
    /** Deletes a piece to which no row refers. @returns whether there may be more */
    sweep(): boolean {
      const id = findUnused.get(Math.min(...underWay, last + 1))?.['id']
      if (id === null || id === undefined) return false
      if (Number(remove.run(Number(id)).changes) === 0) removeUnused.run(Number(id))
      return true
    }
  }
}

/** The text of a value that was read as bytes: what node:sqlite makes takes ten times as long where it is not ASCII. */
export function textOf(bytes: unknown): string {
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array
  return Buffer.from(buffer, byteOffset, byteLength).toString()
}

/** Two surrogates of one character are in one piece. */
function endOfPiece(value: string, from: number): number {
  const end = from + pieceLength
  const last = value.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end + 1 : end
}
