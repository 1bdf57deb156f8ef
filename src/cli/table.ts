// Rows for a person at a terminal.

import { visible } from '../observe/text-log.ts'

/** Columns without any value are left out; what upstreams and clients chose cannot steer the terminal. */
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
