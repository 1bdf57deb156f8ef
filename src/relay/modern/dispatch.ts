// From method to handler, for 2026-07-28. What the endpoint does not offer is as unknown as what the revision does not have.

import { GatewayError } from '../../protocol/errors.ts'
import { has, tasksExtension } from '../../protocol/merge.ts'
import type { Result } from '../../protocol/messages.ts'
import { latestModern, modernRevisions } from '../../protocol/revisions.ts'
import type { ModernCall } from '../call.ts'
import { complete } from '../completion.ts'
import { checkProgressToken, excerpt } from '../floor.ts'
import { listPage, lists } from '../lists.ts'
import type { List } from '../lists.ts'
import { callTool, getPrompt, readResource } from './calls.ts'
import type { ModernFloor, ModernHandler } from './floor.ts'
import { ofTask } from './tasks.ts'

interface Entry {
  /** Where the capability stands that the method belongs to; empty: every endpoint has it. */
  readonly needs: readonly string[]
  readonly handle: ModernHandler
  /** Is what it answers made of all upstreams, so that it waits for those on their way? */
  readonly whole?: boolean
}

const tasks: Entry = { needs: ['extensions', tasksExtension], handle: ofTask }

const entries: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  ['server/discover', { needs: [], handle: discover, whole: true }],
  ...lists.map((list): [string, Entry] => [list.method, { needs: [list.list === 'templates' ? 'resources' : list.list], handle: (call, floor) => listOf(call, floor, list), whole: true }]),
  ['tools/call', { needs: ['tools'], handle: callTool }],
  ['prompts/get', { needs: ['prompts'], handle: getPrompt }],
  ['resources/read', { needs: ['resources'], handle: readResource }],
  ['completion/complete', { needs: ['completions'], handle: async (call, floor) => ({ ...await complete(call, floor), resultType: 'complete' }) }],
  ['tasks/get', tasks],
  ['tasks/update', tasks],
  ['tasks/cancel', tasks]
])

/** @throws GatewayError unknown_method; whatever the handler throws */
export async function dispatch (call: ModernCall, floor: ModernFloor): Promise<Result> {
  const { method } = call.request
  const entry = entries.get(method)
  if (entry === undefined) throw unknown(method)
  checkProgressToken(call)
  const offered = (): boolean => entry.needs.length === 0 || has(floor.catalog(call).modernCapabilities, entry.needs)
  if (entry.whole === true || !offered()) await floor.settled(call)
  if (!offered()) throw floor.states.lost(call) ?? unknown(method)
  return await entry.handle(call, floor)
}

const unknown = (method: string): GatewayError => new GatewayError('unknown_method', `Method not found: ${excerpt(method)}`)

/** `tools/list` and the like. What is shown depends on who asks, or will, so nobody may show it to others. */
async function listOf (call: ModernCall, floor: ModernFloor, list: List): Promise<Result> {
  return { resultType: 'complete', ...listPage(call, list, floor.catalog(call), latestModern), ttlMs: floor.ttlOf(call, list.list), cacheScope: 'private' }
}

async function discover (call: ModernCall, floor: ModernFloor): Promise<Result> {
  const { modernCapabilities: capabilities, instructions } = floor.catalog(call)
  return {
    resultType: 'complete',
    supportedVersions: modernRevisions,
    capabilities,
    ...instructions === undefined ? {} : { instructions },
    ttlMs: floor.ttlOf(call, 'tools', 'prompts', 'resources', 'templates'),
    cacheScope: 'private'
  }
}
