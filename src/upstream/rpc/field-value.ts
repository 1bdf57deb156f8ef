// Values of header fields (RFC 9110 section 5).

import { ownPart } from '../../protocol/own-text.ts'

/** Joins the values of a field that occurs more than once (section 5.3). */
export const joined = (before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}, ${value}`

/** Removes spaces and tabs around a value. `trim` would remove more than other HTTP implementations do. */
export function fieldValue(line: string, start: number): string {
  let end = line.length
  while (start < end && isSpace(line.charCodeAt(start))) start++
  while (end > start && isSpace(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

/** The same for what outlives its head: it keeps nothing of the rest of that. */
export const ownFieldValue = (line: string, start: number): string => ownPart(fieldValue(line, start), 0, line.length)

const isSpace = (code: number): boolean => code === 32 || code === 9
