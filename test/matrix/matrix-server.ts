// What one strict server of the matrix offers in its revision, and what it has seen. One state stands behind all
// connections to an upstream, whatever carries them: connections come and go, a fault stays.

import type { Revision } from '../../src/protocol/messages.ts'
import type { Json } from '../kit/mcp-server.ts'
import { revisionValidator, type RevisionValidator } from './revision-validator.ts'

export type ListKind = 'tools' | 'prompts' | 'resources'

export interface MatrixServer {
  readonly revision: Revision
  readonly validator: RevisionValidator
  /** What reached it and should not have. */
  readonly violations: string[]
  /** `arguments.token` of the calls that were cancelled. */
  readonly cancelled: Set<unknown>
  /** Pages that were asked for by error -32042, by the id of the elicitation: the second call goes through. */
  readonly consents: Set<unknown>
  /** What clients answered to server requests, in order. */
  readonly answers: Json[]
  /** How many tasks it has made. */
  tasks: number
  report(...faults: string[]): void
  /** The list as it is now. */
  list(kind: ListKind | 'templates'): Json[]
  /** Adds an entry named `flipped` to the list, or takes it away, and notifies every connection. */
  flip(kind: ListKind): void
  /** Says that a resource has changed to those who subscribed. */
  touch(uri: string): void
  /** Resolves when two calls with the same token are there. */
  meet(token: unknown): Promise<void>
  /** Every live connection hears of it. */
  readonly listeners: Set<(event: { changed: ListKind } | { updated: string }) => void>
}

export const pageSize = 5
export const one = 'test://one'
/** A resource that is read after a server request. */
export const asking = 'test://asking'
export const outputSchema = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] }
export const listSchema = { type: 'array', items: { type: 'integer' } }

/** Tool -> the first revision that can have it, and the last. */
export const since: Readonly<Record<string, readonly [first: Revision, last: Revision]>> = {
  structured: ['2025-06-18', '2026-07-28'],
  structured_list: ['2026-07-28', '2026-07-28'],
  elicit: ['2025-06-18', '2026-07-28'],
  elicit_url: ['2025-11-25', '2026-07-28'],
  sample_tools: ['2025-11-25', '2026-07-28'],
  url_required: ['2025-11-25', '2025-11-25'],
  task: ['2025-11-25', '2026-07-28']
}
const always: readonly [Revision, Revision] = ['2024-11-05', '2026-07-28']
const tools = [
  'echo',
  'content',
  'fail',
  'rpcerror',
  'progress',
  'log',
  'slow',
  'meet',
  'big',
  'sample',
  'roots',
  'several',
  ...Object.keys(since)
]

export function has(revision: Revision, tool: string): boolean {
  const [first, last] = since[tool] ?? always
  return revision >= first && revision <= last
}

/** An entry of a list with all that its revision knows to say of it. */
function entry(revision: Revision, members: Json): Json {
  return {
    ...members,
    ...(revision >= '2025-06-18' && {
      title: `Title of ${String(members['name'])}`,
      _meta: { 'example.com/kept': true }
    }),
    ...(revision >= '2025-11-25' && {
      icons: [{ src: 'https://example.com/icon.png', mimeType: 'image/png', sizes: ['48x48'] }]
    })
  }
}

function toolOf(revision: Revision, name: string): Json {
  return entry(revision, {
    name,
    description: `the ${name} tool`,
    inputSchema: { type: 'object', properties: { token: { type: 'string' } } },
    ...(revision >= '2025-03-26' && { annotations: { readOnlyHint: true } }),
    ...(name === 'structured' && { outputSchema }),
    ...(name === 'structured_list' && { outputSchema: listSchema }),
    ...(name === 'task' && revision === '2025-11-25' && { execution: { taskSupport: 'required' } })
  })
}

export function createMatrixServer(revision: Revision): MatrixServer {
  const violations: string[] = []
  const listeners: MatrixServer['listeners'] = new Set()
  const meetings = new Map<unknown, () => void>()
  const lists: Record<ListKind | 'templates', Json[]> = {
    tools: tools.filter((name) => has(revision, name)).map((name) => toolOf(revision, name)),
    prompts: [
      entry(revision, { name: 'asking' }),
      entry(revision, {
        name: 'greet',
        description: 'greets',
        arguments: [{ name: 'who', required: true, ...(revision >= '2025-06-18' && { title: 'Who' }) }]
      })
    ],
    resources: [1, 2, 3, 4, 5, 6, 7].map((n) =>
      entry(revision, {
        uri: n === 1 ? one : n === 2 ? asking : `test://number/${n}`,
        name: `number ${n}`,
        mimeType: 'text/plain'
      })
    ),
    templates: [entry(revision, { uriTemplate: 'test://item/{id}', name: 'item' })]
  }
  const flipped = {
    tools: toolOf(revision, 'flipped'),
    prompts: { name: 'flipped' },
    resources: { uri: 'test://flipped', name: 'flipped' }
  }
  return {
    revision,
    validator: revisionValidator(revision),
    violations,
    cancelled: new Set(),
    consents: new Set(),
    answers: [],
    tasks: 0,
    listeners,
    report: (...faults) => {
      violations.push(...faults)
    },
    list: (kind) => lists[kind],
    flip(kind) {
      const at = lists[kind].indexOf(flipped[kind])
      if (at === -1) lists[kind].push(flipped[kind])
      else lists[kind].splice(at, 1)
      for (const notify of listeners) notify({ changed: kind })
    },
    touch(uri) {
      for (const notify of listeners) notify({ updated: uri })
    },
    async meet(token) {
      const other = meetings.get(token)
      meetings.delete(token)
      if (other === undefined)
        await new Promise<void>((resolve) => {
          meetings.set(token, resolve)
        })
      else other()
    }
  }
}
