// A client of the admin API for the command line: finds its URL and key, sends requests, and prints its refusals.

import { createParser } from 'eventsource-parser'
import { createOperatorFetch } from '../../egress/fetch.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { visible, cellText } from '../../observe/text-log.ts'
import { UsageError, type Given, type Io, type OptionSpec } from '../commands/command.ts'
import { connectionFault } from '../client/call.ts'
import { credentialIn, credentialOfFile } from '../client/credential.ts'

export const adminOptions: readonly OptionSpec[] = [
  { flags: '--admin <url>', text: 'the admin API. Default: GATEHOUSE_ADMIN_URL, or http://127.0.0.1:8081' },
  { flags: '--admin-key-file <file>', text: 'a file with the admin key. Default: the value of GATEHOUSE_ADMIN_KEY' }
]

const timeoutMs = 60_000

export interface AdminReplied {
  readonly body: unknown
  readonly etag: string | undefined
}

export interface AdminApi {
  /** @throws AdminRefusal */
  send(method: string, path: string, body?: unknown, ifMatch?: string): Promise<AdminReplied>
  /** Every page of a list. @throws AdminRefusal */
  all(path: string): Promise<JsonObject[]>
  /** Listens to server-sent events until the stream ends or the signal is aborted. @throws AdminRefusal */
  listen(path: string, signal: AbortSignal, told: (event: string, data: string) => void): Promise<void>
}

/** A problem (RFC 9457) that the admin API answered with, or no answer. */
export class AdminRefusal extends Error {
  override readonly name = 'AdminRefusal'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }

  /** The same error, with the name of the file before each fault, or before the message if it lists no faults. */
  in(file: string): AdminRefusal {
    const faults = this.message.replaceAll('\n  ', () => `\n  ${visible(file)}, `)
    return new AdminRefusal(this.status, faults === this.message ? `${visible(file)}: ${faults}` : faults)
  }
}

const withoutAdminApi =
  'A gateway has one where its configuration has "admin" (docs/admin-api.md); quickstart and serve --mcp-json have ' +
  'none. Without it "gatehouse tail FILE" reads the log, and "gatehouse status --config FILE" tries the upstreams.'

const unreachable = (admin: string, error: unknown): AdminRefusal =>
  new AdminRefusal(
    0,
    `${admin}: ${connectionFault(error)}. Is the gateway running, and is this its admin API? ${withoutAdminApi}`
  )

/** @throws UsageError */
export async function openAdminApi({ options }: Pick<Given, 'options'>, env: Io['env']): Promise<AdminApi> {
  const { admin = env['GATEHOUSE_ADMIN_URL'] ?? 'http://127.0.0.1:8081', 'admin-key-file': file } = options
  if (!URL.canParse(admin)) throw new UsageError(`--admin takes the URL of the admin API, not "${admin}".`)
  const given = env['GATEHOUSE_ADMIN_KEY']?.trim() ?? ''
  if (file === undefined && given === '')
    throw new UsageError(
      `Give an admin key: --admin-key-file FILE, or GATEHOUSE_ADMIN_KEY (gatehouse admin-key new). ${withoutAdminApi}`
    )
  const key =
    file === undefined
      ? credentialIn(given, 'GATEHOUSE_ADMIN_KEY', 'an admin key')
      : await credentialOfFile(file, '--admin-key-file', 'an admin key')

  const fetch = createOperatorFetch()

  async function send(method: string, path: string, body?: unknown, ifMatch?: string): Promise<AdminReplied> {
    let answer: Response
    try {
      answer = await fetch(new URL(path, admin), {
        method,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          Authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...(ifMatch !== undefined && { 'If-Match': ifMatch })
        },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
    } catch (error) {
      throw unreachable(admin, error)
    }
    const given = await contentOf(answer)
    if (!answer.ok) throw new AdminRefusal(answer.status, problemText(answer.status, given, admin))
    return { body: given, etag: answer.headers.get('etag') ?? undefined }
  }

  async function listen(path: string, signal: AbortSignal, told: (event: string, data: string) => void): Promise<void> {
    const headers = { Authorization: `Bearer ${key}`, Accept: 'text/event-stream' }
    try {
      const answer = await fetch(new URL(path, admin), { headers, signal })
      const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
      if (!answer.ok || !isStream)
        throw new AdminRefusal(answer.status, problemText(answer.status, await contentOf(answer), admin))
      const parser = createParser({ onEvent: ({ event = 'message', data }) => told(event, data) })
      const decoder = new TextDecoder()
      for await (const chunk of answer.body ?? []) parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }))
    } catch (error) {
      if (signal.aborted) return
      throw error instanceof AdminRefusal ? error : unreachable(admin, error)
    }
  }

  return {
    send,
    listen,
    async all(path) {
      const items: JsonObject[] = []
      let cursor: unknown
      do {
        const query = `limit=200${typeof cursor === 'string' ? `&cursor=${encodeURIComponent(cursor)}` : ''}`
        const { body } = await send('GET', `${path}${path.includes('?') ? '&' : '?'}${query}`)
        const found = isObject(body) ? body : {}
        if (!Array.isArray(found['items'])) throw new AdminRefusal(0, problemText(200, body, admin))
        items.push(...found['items'].filter(isObject))
        cursor = found['nextCursor']
      } while (typeof cursor === 'string')
      return items
    }
  }
}

/** Reads a response: JSON as a value, anything else as text. */
async function contentOf(answer: Response): Promise<unknown> {
  const text = await answer.text()
  if (!/json/.test(answer.headers.get('content-type') ?? '')) return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function problemText(status: number, given: unknown, admin: string): string {
  if (!isObject(given) || typeof given['detail'] !== 'string')
    return `${admin} answered with HTTP ${status}, and not as the admin API does. Is it the right address?`
  const { detail, remedy, errors } = given
  const faults = (Array.isArray(errors) ? errors : []).filter(isObject).map(({ path, message, suggestion }) => {
    const place = cellText(path)
    return `\n  ${visible(`${place === '' ? '' : `${place}: `}${cellText(message)}. ${cellText(suggestion)}`.trim())}`
  })
  // The remedy of faults is to mend them.
  return visible(`${detail} ${faults.length > 0 ? '' : cellText(remedy)}`.trim()) + faults.join('')
}
