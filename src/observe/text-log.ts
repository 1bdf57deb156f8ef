// A line of the log as a person at a terminal reads it: time, level, message, fields, all on one line.

import { styleText } from 'node:util'
import { problemLine, problemLineIn, type Problem } from '../config/problems.ts'
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
 * @returns `13:26:45 WARN  upstream is away upstream=files` in local time, without the level where it is INFO; a call
 * as `13:26:45 files__read ok 36 ms ada`. Only the faults of a configuration and the stack of an error, which faults of
 * the gateway have, stand below their line.
 */
export function textLine(json: string, hasColours: boolean): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>
  const clock = new Date(Number(time)).toTimeString().slice(0, 8)
  const [name, colour] = levels[Number(level)] ?? [visible(String(level)), 'gray']
  const paint = (style: typeof colour, text: string): string =>
    hasColours ? styleText(style, text, { validateStream: false }) : text
  const shown = Number(level) === 30 ? [] : [paint(colour, name)]
  if (msg === 'call') return [clock, ...shown, callLine(fields, paint)].join(' ') + `\n${stackIn(fields['err'])}`
  if (msg === 'request') return `${clock} ${requestLine(fields)}\n`
  if (msg === 'refused') return `${clock} ${refusedLine(fields, paint)}\n`
  if (msg === 'upstream is ready') return `${clock} ${readyLine(fields)}\n`
  let below = faultLines(fields)
  const { problems: _listed, file: _named, ...others } = fields
  const words = Object.entries(below === '' ? fields : others).map(([key, value]) => {
    if (!isObject(value) || typeof value['stack'] !== 'string') {
      // Errors of the gateway explain themselves in a sentence.
      const text = isObject(value) && typeof value['message'] === 'string' ? value['message'] : value
      return paint('gray', `${visible(key)}=`) + word(text)
    }
    const { stack: _below, ...rest } = value
    below += stackIn(value)
    return paint('gray', `${visible(key)}=`) + word(rest)
  })
  const line = [clock, ...shown, visible(String(msg)), ...words].join(' ')
  return `${line}\n${below.split('\n').map(visible).join('\n')}`
}

/** Of a fault of the gateway, in lines of their own. */
function stackIn(error: unknown): string {
  const stack = isObject(error) ? error['stack'] : undefined
  return typeof stack === 'string'
    ? stack
        .split('\n')
        .map((line) => `    ${visible(line)}\n`)
        .join('')
    : ''
}

/** The faults of a configuration, in the words of `gatehouse check`. */
function faultLines({ problems, file }: Readonly<Record<string, unknown>>): string {
  if (!Array.isArray(problems) || !problems.every(isProblem)) return ''
  const lineOf = (each: Problem): string => (typeof file === 'string' ? problemLineIn(file, each) : problemLine(each))
  return problems.map((each) => `    ${lineOf(each).replaceAll('\n', ' ')}\n`).join('')
}

const isProblem = (value: unknown): value is Problem =>
  isObject(value) && typeof value['path'] === 'string' && typeof value['message'] === 'string'

type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

/** What was called, how it ended, what it took, for whom, and why it failed. Everything else is in the JSON form. */
function callLine(fields: Record<string, unknown>, paint: Paint): string {
  const { method, upstream, tool, prompt, resource, outcome, code, ms, user, apiKey, error } = fields as Readonly<
    Record<string, string>
  >
  const named = prompt === undefined ? resource && `${upstream} ${resource}` : `${upstream}__${prompt}`
  const what = tool === undefined ? [method, named].filter(Boolean).join(' ') : `${upstream}__${tool}`
  const how = outcome === 'rpc_error' ? `rpc_error ${code}` : `${outcome}`
  const took = `${Math.round(Number(ms))} ms`
  const who = `${user ?? apiKey}`
  const said = outcome === 'denied' ? deniedText(fields['rule']) : error
  const why = said === undefined ? '' : `: ${visible(said)}`
  const colour = outcome === 'ok' ? 'green' : 'yellow'
  return `${visible(what)} ${paint(colour, visible(how))} ${took} ${visible(who)}${why}`
}

/** By which rule: its caller was told that there is no such thing. */
const deniedText = (rule: unknown): string =>
  rule === 'default' ? 'no rule allows it' : rule === 'kill switch' ? 'a kill switch' : `the rule ${String(rule)}`

/** Such as `POST /t/x/mcp 202 notifications/initialized 1 ms alice`. */
function requestLine(fields: Record<string, unknown>): string {
  const { method, path, status, message, replayed, ms, user, apiKey, address } = fields as Readonly<
    Record<string, string | number | undefined>
  >
  const again = replayed === undefined ? [] : [`${replayed} replayed`]
  const parts = [method, path, status, message, ...again, `${Math.round(Number(ms))} ms`, user ?? apiKey ?? address]
  return parts.flatMap((part) => (part === undefined ? [] : visible(String(part)))).join(' ')
}

/** Such as `POST /t/x/mcp 401 no_token 1 ms 127.0.0.1`: what in particular was refused, where that is known. */
function refusedLine(fields: Record<string, unknown>, paint: Paint): string {
  const { method, path, status, reason, error, ms, user, apiKey, host, origin, address } = fields as Readonly<
    Record<string, string | number | undefined>
  >
  const { cause } = fields
  const particular = isObject(cause) ? (cause['reason'] as string | undefined) : undefined
  const [sentence] = /^.*?[.](?= |$)/s.exec(String(error ?? '')) ?? [error]
  const named = host ?? origin ?? (particular === undefined ? sentence : undefined)
  const parts = [
    ...[method, path].map((part) => part && visible(String(part))),
    paint('yellow', visible(`${String(status)} ${String(particular ?? reason)}`)),
    ms !== undefined && `${Math.round(Number(ms))} ms`,
    visible([user ?? apiKey, address].filter(Boolean).map(String).join(' '))
  ]
  return `${parts.filter(Boolean).join(' ')}${named === undefined ? '' : `: ${visible(String(named))}`}`
}

/** Such as `slow is ready: 13 tools, 13 s`. */
function readyLine({ upstream, tenant, tools, seconds }: Record<string, unknown>): string {
  const counted = tools === 1 ? '1 tool' : `${String(tools)} tools`
  return visible(`${String(upstream)} is ready: ${counted}, ${String(seconds)} s (${String(tenant)})`)
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

/** A value of an answer, as text: nothing for what is not there, JSON for what has members. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
