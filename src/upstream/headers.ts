// What every HTTP request to an upstream carries besides what its session adds: the definition's own headers, none of them ours.

import { atLeast } from '../protocol/revisions.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { Implementation } from '../protocol/messages.ts'
import type { Revision } from '../protocol/revisions.ts'

/** Ours to set; what a definition says for them is left out. */
const reserved = new Set(['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'last-event-id', 'mcp-method', 'mcp-name', 'mcp-protocol-version', 'mcp-session-id', 'transfer-encoding'])

/** Names and values in turn. */
export function baseHeaders (definition: HttpDefinition, { name, version }: Implementation): string[] {
  const own = Object.entries(definition.headers).filter(([name]) => !reserved.has(name.toLowerCase()) && !/^mcp-param-/i.test(name))
  const named = own.some(([name]) => name.toLowerCase() === 'user-agent')
  return ['accept-encoding', 'identity', ...named ? [] : ['user-agent', `${name}/${version}`.replace(/[^\x21-\x7e]+/g, '-')], ...own.flat()]
}

/** 2025-06-18 basic/transports "Protocol Version Header": from that revision on, once it is negotiated. */
export function revisionHeader (revision: Revision | undefined): string[] {
  return revision !== undefined && atLeast(revision, '2025-06-18') ? ['mcp-protocol-version', revision] : []
}
