// A line of the log as a person at a terminal reads it: time, level, message, fields, all on one line.

import { styleText } from 'node:util'
import { isObject } from '../protocol/messages.ts'

const levels: Readonly<Record<number, readonly [string, Parameters<typeof styleText>[0]]>> = {
  10: ['TRACE', 'gray'],
  20: ['DEBUG', 'gray'],
  30: ['INFO ', 'green'],
  40: ['WARN ', 'yellow'],
  50: ['ERROR', 'red'],
  60: ['FATAL', 'red']
}

/**
 * @param json a line of the log, as pino writes it
 * @returns `13:26:45.764 INFO  call tenant=demo method=tools/call ms=3.2` in local time. Only the stack of an error,
 * which faults of the gateway have, stands below its line.
 */
export function textLine(json: string, hasColours: boolean): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>
  const at = new Date(Number(time))
  const clock = `${at.toTimeString().slice(0, 8)}.${String(at.getMilliseconds()).padStart(3, '0')}`
  const [name, colour] = levels[Number(level)] ?? [String(level), 'gray']
  const paint = (style: typeof colour, text: string): string =>
    hasColours ? styleText(style, text, { validateStream: false }) : text
  let stack = ''
  const words = Object.entries(fields).map(([key, value]) => {
    if (!isObject(value) || typeof value['stack'] !== 'string') return paint('gray', `${key}=`) + word(value)
    const { stack: lines, ...rest } = value
    stack = lines.replaceAll(/^/gm, '    ') + '\n'
    return paint('gray', `${key}=`) + word(rest)
  })
  const line = [clock, paint(colour, name), visible(String(msg)), ...words].join(' ')
  return `${line}\n${stack.split('\n').map(visible).join('\n')}`
}

const word = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"={]+$/.test(value) ? visible(value) : visible(JSON.stringify(value))

/**
 * Writes control, format and direction characters as `\u{...}`. Servers and clients decide what some fields say: an
 * escape sequence among it would be obeyed by the terminal, a character that changes the direction of writing would
 * hide what follows.
 */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`)
