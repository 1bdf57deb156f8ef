// What the load does again and again: an operation is one or more requests, made as bytes in advance where they can be,
// and every answer is checked, so that no work can be left out.

import {
  envelope,
  initializeParams,
  largeBytes,
  legacyRevision,
  modernRevision,
  progressEvents,
  request,
  toolText
} from '../messages.ts'
import { createCaller, type Answer } from './connection.ts'
import { headerOf } from './wire.ts'

/** `life`: initialize, initialized, one call, DELETE. `task`: `tasks/get` of a task of 2026-07-28. */
type Kind = 'call' | 'modern-call' | 'list' | 'life' | 'task'
type ToolName = 'echo' | 'large' | 'progress'

export interface Target {
  readonly url: string
  readonly token: string
  readonly kind: Kind
  /** As its server names it; clients find the public name in the list. */
  readonly tool: ToolName
  /** Used in turn; at the least one for each connection. */
  readonly sessions: number
  /** Where sessions are opened, or the task is made, if not at `url`: at another replica. */
  readonly owner?: { readonly url: string; readonly token: string }
}

/** For one connection. */
export interface Operation {
  /** @returns the first request */
  begin(): Buffer
  /**
   * @returns the next request; undefined at the end
   * @throws Error where the answer is not the right one
   */
  next(head: string, body: Buffer): Buffer | undefined
}

type Fields = Readonly<Record<string, string>>
type Ask = (request: Buffer) => Promise<Answer>

/** One for each connection; sessions are opened, public names learnt and tasks made on the way. */
export async function prepareOperations(target: Target, connections: number): Promise<Operation[]> {
  const { kind, tool, sessions, owner = target } = target
  const to = requestsTo(target)
  const caller = createCaller(new URL(target.url))
  const atOwner = createCaller(new URL(owner.url))
  const each = (make: (at: number) => Operation): Operation[] =>
    Array.from({ length: connections }, (_, at) => make(at))
  try {
    if (kind === 'modern-call') {
      const name = await findTool(tool, (params) => caller.ask(to.modern('tools/list', params)))
      return each(() => repeated([to.modern('tools/call', callOf(name, tool), name)], isRight[tool]))
    }
    if (kind === 'task') {
      const make = requestsTo(owner)
      const name = await findTool('task', (params) => atOwner.ask(make.modern('tools/list', params)))
      const { head, body } = await atOwner.ask(make.modern('tools/call', callOf(name, 'echo'), name))
      const [, taskId] = /"taskId":"([^"]+)"/.exec(body.toString()) ?? []
      if (taskId === undefined) throw new Error(`no task was made: ${head}\n${body.toString()}`)
      return each(() => repeated([to.modern('tasks/get', { taskId }, taskId)], (body) => body.includes('"working"')))
    }
    const opener = requestsTo(owner)
    const first = await openSession(opener, atOwner.ask)
    const name = await findTool(tool, (params) => atOwner.ask(opener.legacy(first, 'tools/list', params)))
    if (kind === 'life') return each(() => lifeOfASession(to, name))
    const opened = [first, ...(await openSessions(owner, sessions - 1))]
    // The first call of a session opens its connection to the upstream: with many sessions, nothing else would be
    // measured for as long as not all of them have had their turn.
    if (kind === 'call' && tool === 'echo')
      await callOnce(
        target,
        opened.map((session) => to.legacy(session, 'tools/call', callOf(name, tool)))
      )
    const requests = opened.map((session) =>
      kind === 'list' ? to.legacy(session, 'tools/list') : to.legacy(session, 'tools/call', callOf(name, tool))
    )
    const share = (at: number): Buffer[] => requests.filter((_, which) => which % connections === at)
    return each((at) => repeated(share(at), kind === 'list' ? isList : isRight[tool]))
  } finally {
    caller.end()
    atOwner.end()
  }
}

type Requests = ReturnType<typeof requestsTo>

/** Requests as bytes. All of them have the same id, which is replaced in place. */
function requestsTo({ url, token }: { readonly url: string; readonly token: string }) {
  const { host, pathname } = new URL(url)
  const plain: Fields = { Host: host, Authorization: `Bearer ${token}`, Accept: 'application/json, text/event-stream' }
  const bytes = (method: string, fields: Fields, body: string): Buffer => {
    const ofBody = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) }
    const head = Object.entries({ ...plain, ...fields, ...(body === '' ? {} : ofBody) })
    return Buffer.from(
      `${method} ${pathname} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
    )
  }
  const ofSession = (session: string): Fields => ({
    'Mcp-Session-Id': session,
    'MCP-Protocol-Version': legacyRevision
  })
  return {
    initialize: bytes('POST', {}, request(firstId, 'initialize', initializeParams)),
    initialized: (session: string): Buffer =>
      bytes('POST', ofSession(session), '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    legacy: (session: string, method: string, params?: Fields): Buffer =>
      bytes('POST', ofSession(session), request(firstId, method, params)),
    remove: (session: string): Buffer => bytes('DELETE', ofSession(session), ''),
    modern(method: string, params: Fields = {}, name?: string): Buffer {
      const routing = { 'MCP-Protocol-Version': modernRevision, 'Mcp-Method': method }
      const fields: Fields = name === undefined ? routing : { ...routing, 'Mcp-Name': name }
      const { _meta, ...rest } = params as Readonly<Record<string, unknown>>
      const body = request(firstId, method, { ...rest, _meta: { ...envelope, ...(_meta as object | undefined) } })
      return bytes('POST', fields, body)
    }
  }
}

const callOf = (name: string, tool: ToolName) =>
  ({
    name,
    arguments: { text: toolText },
    ...(tool === 'progress' ? { _meta: { progressToken: 'bench' } } : {})
  }) as unknown as Fields

/** @returns the public name of a tool, from whichever page of the list has it */
async function findTool(tool: string, list: (params: Fields) => Promise<Answer>): Promise<string> {
  for (let params: Fields = {}; ;) {
    const text = (await list(params)).body.toString()
    const [, name] = new RegExp(`"name":"((?:[^"]*_)?${tool})"`).exec(text) ?? []
    if (name !== undefined) return name
    const [, cursor] = /"nextCursor":"([^"]+)"/.exec(text) ?? []
    if (cursor === undefined) throw new Error(`no tool ${tool} in ${text.slice(0, 500)}`)
    params = { cursor }
  }
}

async function openSession(to: Requests, ask: Ask): Promise<string> {
  const session = sessionOf(await ask(to.initialize))
  expectStatus(await ask(to.initialized(session)), '202')
  return session
}

function sessionOf(answer: Answer): string {
  expectStatus(answer, '200')
  const session = headerOf(answer.head, 'mcp-session-id')
  if (session === undefined) throw new Error(`no session: ${answer.head}`)
  return session
}

async function openSessions(target: Pick<Target, 'url' | 'token'>, count: number): Promise<string[]> {
  const sessions: string[] = []
  const to = requestsTo(target)
  await manyTimes(target, count, async (ask) => sessions.push(await openSession(to, ask)))
  return sessions
}

async function callOnce(target: Pick<Target, 'url'>, requests: readonly Buffer[]): Promise<void> {
  await manyTimes(target, requests.length, async (ask, at) =>
    expectStatus(await ask(requests[at] ?? Buffer.alloc(0)), '200')
  )
}

/** A few at once. */
async function manyTimes(
  { url }: Pick<Target, 'url'>,
  count: number,
  act: (ask: Ask, at: number) => Promise<unknown>
): Promise<void> {
  let begun = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      const { ask, end } = createCaller(new URL(url))
      for (let at = begun++; at < count; at = begun++) await act(ask, at)
      end()
    })
  )
}

function expectStatus({ head, body }: Answer, status: string): void {
  if (!head.startsWith(status, 9)) throw new Error(`not ${status}: ${head}\n\n${body.toString().slice(0, 500)}`)
}

/** Ids all have as many digits. */
const firstId = 100_000_000
let lastId = firstId

function setId(bytes: Buffer, end: number, id: number): void {
  for (let at = end, rest = id; rest > 0; at--, rest = Math.floor(rest / 10)) bytes[at] = 48 + (rest % 10)
}

const endOfId = (bytes: Buffer): number => bytes.indexOf(`"id":${firstId}`) + `"id":${firstId}`.length - 1

/** Requests in turn, each time with a new id. */
function repeated(requests: readonly Buffer[], isRight: (body: Buffer) => boolean): Operation {
  const all = requests.map((bytes) => ({ bytes, end: endOfId(bytes) }))
  const expected = Buffer.from(`"id":${firstId}`)
  let turn = 0
  return {
    begin() {
      const next = all[turn]
      if (next === undefined) throw new Error('fewer sessions than connections')
      turn = (turn + 1) % all.length
      setId(next.bytes, next.end, ++lastId)
      setId(expected, expected.length - 1, lastId)
      return next.bytes
    },
    next(head, body) {
      if (head.startsWith('200', 9) && body.includes(expected) && isRight(body)) return undefined
      throw new Error(`not the answer to ${expected.toString()}: ${head}\n\n${body.toString().slice(0, 500)}`)
    }
  }
}

const text = Buffer.from(toolText)
const isRight: Readonly<Record<ToolName, (body: Buffer) => boolean>> = {
  echo: (body) => body.includes(text),
  large: (body) => body.length > largeBytes,
  progress: (body) =>
    body.includes(text) && body.toString('latin1').split('"notifications/progress"').length === progressEvents + 1
}
const isList = (body: Buffer): boolean => body.toString('latin1').split('"inputSchema"').length > 100

/** What a session begins with, one call, and its end. */
function lifeOfASession(to: Requests, name: string): Operation {
  let session = ''
  let step = 0
  return {
    begin() {
      step = 0
      return to.initialize
    },
    next(head, body) {
      // Gateways end a session with 200, 202 or 204.
      expectStatus({ head, body }, ['200', '202', '200', '20'][step] ?? '')
      switch (step++) {
        case 0:
          session = sessionOf({ head, body })
          return to.initialized(session)
        case 1:
          return to.legacy(session, 'tools/call', callOf(name, 'echo'))
        case 2:
          if (!body.includes(text)) throw new Error(`not the answer: ${body.toString()}`)
          return to.remove(session)
        default:
          return undefined
      }
    }
  }
}
