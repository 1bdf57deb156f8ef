// The upstreams of a tenant as this process knows them: what they are, without anything secret, and how they do.

import type { Static } from 'typebox'
import { closedObject } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import { stringOrNone, treeOf, type Tree } from '../config/shape.ts'
import { shownUpstream, type TenantDocument } from '../control/document/tenant-document.ts'
import { tenantId, upstreamName } from '../protocol/messages.ts'
import type { Transport } from '../protocol/seams.ts'
import type { Administrator } from './access.ts'
import {
  configurationSchema,
  documentsKnown,
  etagHeader,
  managedBySchema,
  managedOf,
  mayRead,
  versionSchema
} from './configuration/managed.ts'
import { page, pageSchema, pageQuery } from './paging.ts'
import { noSuch } from './problem.ts'
import { administrators, AdminReply, defineRoute, everyRole, type AdminServices } from './route.ts'

const orNull = <Schema extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(
  schema: Schema,
  description: string
) => Type.Union([schema, Type.Null()], { description })

export const UpstreamEntry = closedObject({
  name: Type.String({ description: 'Name of the upstream in this tenant.' }),
  type: Type.Enum(['stdio', 'http'], { description: '`stdio`: a child process. `http`: a URL.' }),
  transport: Type.Union([Type.Enum(['stdio', 'streamable-http', 'sse']), Type.Null()], {
    description:
      'The MCP transport; `sse` is the HTTP+SSE of 2024-11-05. null: the configuration of the URL names none, and ' +
      'no connection is open that shows it.'
  }),
  target: Type.String({
    description:
      'The program, or the origin of the URL. Paths, queries and arguments are left out, since they may hold ' +
      'secrets.'
  }),
  secrets: Type.Array(Type.String(), {
    description: 'Names of its configured headers or environment variables. Values are never shown.'
  }),
  isolation: Type.Enum(['shared', 'principal', 'session'], {
    description: 'Who shares a connection: all callers, the requests of one caller, or those of one session.'
  }),
  state: Type.Enum(['connected', 'idle', 'away', 'disabled'], {
    description:
      'State at the process that answers. `idle`: no connection is open, and no attempt has failed since one was. ' +
      '`away`: it cannot be reached. `disabled`: the configuration leaves it out.'
  }),
  connections: Type.Integer({ description: 'Number of open connections of the process that answers.' }),
  calls: Type.Integer({ description: 'Number of calls that run on these connections.' }),
  processes: Type.Union([closedObject({ count: Type.Integer(), bytes: Type.Integer() }), Type.Null()], {
    description:
      'For `stdio`: the number of its processes, with those that they started, and their memory in bytes when it ' +
      'was last read, at the process that answers. null for a URL.'
  }),
  strayLines: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'For `stdio`: the number of lines on standard output that are no MCP messages, at the process that answers. ' +
      'An answer among them is lost. null for a URL.'
  }),
  revisions: Type.Array(Type.String(), { description: 'MCP revisions that are spoken on its open connections.' }),
  awaySince: orNull(Type.String(), 'Since when it cannot be reached (RFC 3339).'),
  nextTryAt: orNull(Type.String(), 'When the gateway tries to connect again (RFC 3339). A call may try sooner.'),
  lastError: orNull(
    Type.String(),
    'Error of the last failed attempt to reach it. For administrators only, since it may contain text of the server.'
  ),
  lastStderr: orNull(
    Type.String(),
    'Last line of standard error of a child process. For administrators only, since it may contain data of callers.'
  ),
  listing: Type.Union(
    [
      closedObject({
        tools: Type.Integer(),
        prompts: Type.Integer(),
        resources: Type.Integer(),
        templates: Type.Integer()
      }),
      Type.Null()
    ],
    {
      description:
        'How many tools, prompts, resources and templates it lists for clients without capabilities. null: that is ' +
        'not known now.'
    }
  ),
  managedBy: managedBySchema,
  version: versionSchema,
  configuration: configurationSchema
})

function upstreamEntry(
  definition: UpstreamDefinition,
  { role }: Administrator,
  { pool, listings, wall, control, held }: AdminServices
): Static<typeof UpstreamEntry> {
  const document = documentsKnown(control).get(definition.tenant)
  const { connections, calls, transport, revisions, awayMs, retriedInMs, lastError, lastLine } =
    pool.stateOf(definition)
  const listing = listings.peek(definition)
  const now = wall.now()
  const timeAt = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(now + ms).toISOString())
  const isStdio = definition.type === 'stdio'
  const forAdministrators = (text: string | undefined): string | null =>
    administrators.some((each) => each === role) ? (text ?? null) : null
  return {
    name: definition.name,
    type: definition.type,
    transport: namedTransports[isStdio ? 'stdio' : definition.transport] ?? transport ?? null,
    target: isStdio ? definition.command : new URL(definition.url).origin,
    secrets: Object.keys(isStdio ? definition.env : definition.headers),
    isolation: definition.isolation,
    state: awayMs !== undefined ? 'away' : connections > 0 ? 'connected' : 'idle',
    connections,
    calls,
    processes: processesOf(definition, held),
    strayLines: isStdio ? held.supervisor.strayLines.of(definition) : null,
    revisions,
    awaySince: timeAt(awayMs === undefined ? undefined : -awayMs),
    nextTryAt: timeAt(retriedInMs),
    lastError: forAdministrators(lastError),
    lastStderr: forAdministrators(lastLine),
    listing:
      listing === undefined
        ? null
        : {
            tools: listing.tools.length,
            prompts: listing.prompts.length,
            resources: listing.resources.length,
            templates: listing.templates.length
          },
    ...managedOf(document),
    configuration: configurationOf(definition.name, role, document)
  }
}

/** The transports by the configuration, before a connection has shown the real one. */
const namedTransports: Readonly<Record<string, Transport>> = {
  stdio: 'stdio',
  streamable: 'streamable-http',
  'streamable-http': 'streamable-http',
  streamableHttp: 'streamable-http',
  sse: 'sse'
}

function processesOf(definition: UpstreamDefinition, { supervisor }: AdminServices['held']) {
  if (definition.type !== 'stdio') return null
  const { processes: count, bytes } = supervisor.usageOf(definition.hash)
  return { count, bytes }
}

function configurationOf(name: string, role: Administrator['role'], document: TenantDocument | undefined): Tree | null {
  const parts = treeOf(document?.tree['upstreams'])
  return mayRead(role) && Object.hasOwn(parts, name) ? treeOf(shownUpstream(parts[name])) : null
}

/** Returns the entry of a disabled upstream, which has nothing but its configuration. */
function disabledEntry(
  name: string,
  part: Tree,
  role: Administrator['role'],
  document: TenantDocument
): Static<typeof UpstreamEntry> {
  const { command, url, env, headers, isolation } = part
  const type = command === undefined ? 'http' : 'stdio'
  return {
    name,
    type,
    transport: namedTransports[type === 'stdio' ? type : (stringOrNone(part['type']) ?? '')] ?? null,
    target: typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : (stringOrNone(command) ?? ''),
    secrets: Object.keys(treeOf(type === 'http' ? headers : env)),
    isolation: isolation === 'shared' || isolation === 'principal' ? isolation : 'session',
    state: 'disabled',
    connections: 0,
    calls: 0,
    processes: null,
    strayLines: null,
    revisions: [],
    awaySince: null,
    nextTryAt: null,
    lastError: null,
    lastStderr: null,
    listing: null,
    ...managedOf(document),
    configuration: configurationOf(name, role, document)
  }
}

/** @throws AdminProblem not_found */
export function upstreamAnswer(
  { tenant: id = '', upstream: name = '' }: Readonly<Record<string, string>>,
  administrator: Administrator,
  services: AdminServices,
  status = 200
): AdminReply {
  const document = documentsKnown(services.control).get(id)
  const definition = services.snapshot().tenants.get(tenantId(id))?.upstreams.get(upstreamName(name))
  if (definition !== undefined)
    return new AdminReply(upstreamEntry(definition, administrator, services), etagHeader(document), status)
  const parts = treeOf(document?.tree['upstreams'])
  if (document === undefined || !Object.hasOwn(parts, name)) throw noSuch('upstream')
  const body = disabledEntry(name, treeOf(parts[name]), administrator.role, document)
  return new AdminReply(body, etagHeader(document), status)
}

export const upstreamRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/upstreams',
      roles: everyRole,
      summary: 'Lists the upstreams of a tenant, with their state at the process that answers.',
      query: closedObject(pageQuery),
      response: pageSchema(UpstreamEntry)
    },
    ({ tenant, administrator, query }, services) => {
      const { items, nextCursor } = page(tenant.upstreams.values(), ({ name }) => name, query)
      return { items: items.map((each) => upstreamEntry(each, administrator, services)), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/upstreams/{upstream}',
      roles: everyRole,
      summary: 'Returns one upstream. The ETag is that of its tenant.',
      response: UpstreamEntry
    },
    ({ administrator, params }, services) => upstreamAnswer(params, administrator, services)
  )
] as const
