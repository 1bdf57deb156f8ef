// What commands print: rows and lines for a person at a terminal, and data. Upstreams, clients and models chose much of
// it, and none of that can steer the terminal.

import { unicodeEscapes } from '../observe/lines/line-bytes.ts'
import { visible } from '../observe/text-log.ts'

/** @param json text of JSON. @returns the same values, without characters that a terminal may obey or hide text by */
export const harmlessJson = (json: string): string =>
  json.replaceAll(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, unicodeEscapes)

/** @returns a document of `--json` */
export const jsonText = (value: unknown): string => `${harmlessJson(JSON.stringify(value, null, 2))}\n`

/** Line by line, and with its tabs. */
export const visibleLines = (text: string): string => text.replaceAll(/[^\n\t]+/g, (piece) => visible(piece))

/** Lines of at most 100 columns, where words are no longer; those below the first begin with two spaces. */
export const wrapped = (text: string): string =>
  `${visible(text)
    .replaceAll(/(.{1,98})(?:\s+|$)/g, '$1\n  ')
    .trimEnd()}\n`

/** Columns without any value are left out. */
export function tableText(heads: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const cells = [heads, ...rows.map((row) => row.map(visible))]
  const shown = heads.flatMap((_, at) => (rows.some((row) => (row[at] ?? '') !== '') ? [at] : []))
  const widths = shown.map((at) => Math.max(...cells.map((row) => (row[at] ?? '').length)))
  if (rows.length === 0) return 'none\n'
  return cells
    .map(
      (row) =>
        `${shown
          .map((at, column) => (row[at] ?? '').padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`
    )
    .join('')
}
