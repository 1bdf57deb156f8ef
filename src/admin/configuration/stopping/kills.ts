// Kill switches: a tool, an upstream, a caller, a key or a whole tenant is stopped at every process within a second,
// whether the file or the API manages the tenant. No request needs If-Match, because stopping is urgent.

import type { Static } from 'typebox'
import { closedObject } from '../../../config/schema/parts.ts'
import { Type } from '../../../config/schema/type.ts'
import type { Kill } from '../../../config/policy/kill.ts'
import type { Tenant } from '../../../config/snapshot.ts'
import { reservedIssuerPrefix } from '../../../config/auth/auth-config.ts'
import { killedText } from '../../../policy/kills.ts'
import { tenantId } from '../../../protocol/messages.ts'
import { ControlError } from '../../../control/control-error.ts'
import type { SwitchedKill } from '../../../control/kill-switches.ts'
import { isSameKill, stoppedThing, type DatedKill } from '../../../control/kills.ts'
import { alsoStoppedIn, besidesOf } from '../../../control/same-targets.ts'
import { sessionsLookedAt } from '../../../store/keys.ts'
import { changeHash, recordChange, recordRefusedChange } from '../../changes.ts'
import { charsOfRecords } from '../../live/sessions.ts'
import { pageSchema, page, pageQuery } from '../../paging.ts'
import { noSuch } from '../../problem.ts'
import {
  AdminReply,
  administrators,
  defineRoute,
  everyRole,
  type AdminRequest,
  type AdminRoute,
  type AdminServices
} from '../../route.ts'
import { checkKnown } from './known-targets.ts'

const optional = (description: string) => Type.Optional(Type.String({ description }))

const KillEntry = closedObject({
  kind: Type.Enum(['tool', 'upstream', 'principal', 'key', 'tenant'], { description: 'What is stopped.' }),
  upstream: optional('Name of the upstream, or of the upstream that has the tool.'),
  tool: optional('Name of the tool at its upstream.'),
  issuer: optional('Issuer of the caller.'),
  subject: optional('Subject of the caller.'),
  key: optional('Name of the API key.'),
  at: Type.String({ description: 'When it was stopped (RFC 3339).' }),
  by: Type.String({ description: 'Who stopped it: name of the admin key, or subject and issuer.' }),
  role: optional('Role of who stopped it. A tenant-admin takes back only what a tenant-admin has stopped.'),
  also: Type.Array(Type.String(), {
    description: 'Names that the same server or key has had since: they are stopped with it.'
  }),
  besides: Type.Array(Type.String(), {
    description:
      'Upstreams that led to the same server already when it was stopped. They go on while they are configured.'
  })
})

const PutQuery = closedObject({
  force: Type.Optional(
    Type.Enum(['true'], {
      description:
        'Also stops a tool or caller that is not known. Without `force` these get 404, since the name may be ' +
        'misspelt.'
    })
  )
})

type Params = Readonly<Record<string, string>>

/** The targets that can be stopped: the path below `/kills`, the words for it, and the kill of such a path. */
const switches: ReadonlyArray<readonly [path: string, what: string, killOf: (params: Params) => Kill]> = [
  [
    '/tools/{upstream}/{tool}',
    'a tool, by its name at the upstream: callers get the answer for a tool that does not exist',
    ({ upstream = '', tool = '' }) => ({ kind: 'tool', upstream, tool })
  ],
  [
    '/upstreams/{upstream}',
    'an upstream, and whatever leads to the same server from then on: endpoints offer nothing of it, its ' +
      'connections and processes end',
    ({ upstream = '' }) => ({ kind: 'upstream', upstream })
  ],
  [
    '/principals/{issuer}/{subject}',
    'a caller, by issuer and subject (percent-encoded): its requests get 403, its sessions and streams end',
    ({ issuer = '', subject = '' }) => ({ kind: 'principal', issuer, subject })
  ],
  [
    '/keys/{key}',
    'an API key, also under other names: its requests get 403, sessions and streams of its holder end',
    ({ key = '' }) => ({ kind: 'key', key })
  ],
  ['/tenant', 'the whole tenant: all requests get 403, sessions, streams and processes end', () => ({ kind: 'tenant' })]
]

/** Ends sessions a page at a time, and tells after each. @throws GatewayError unavailable */
async function* sessionEnds(tenant: string, kill: Kill, { sessions }: AdminServices): AsyncGenerator<void, void> {
  for await (const page of sessions.index.pages(tenantId(tenant))) {
    const theirs = page.filter(({ record: { owner } }) => {
      const { issuer, subject } = owner
      return (
        kill.kind === 'tenant' ||
        (kill.kind === 'key' && issuer === `${reservedIssuerPrefix}key` && subject === kill.key) ||
        (kill.kind === 'principal' && issuer === kill.issuer && subject === kill.subject)
      )
    })
    await Promise.all(theirs.map((session) => sessions.end(session)))
    yield
  }
}

const holdsSessions = ({ kind }: Kill): boolean => kind !== 'tool' && kind !== 'upstream'

/** Nobody waits for more than the first page: whoever is stopped is out already. @throws GatewayError unavailable */
async function endSessionsOf(tenant: string, kill: Kill, services: AdminServices): Promise<void> {
  const ends = sessionEnds(tenant, kill, services)
  if ((await ends.next()).done !== true) void endOthers(ends, tenant, kill, services)
}

/** Never rejects. */
async function endOthers(
  ends: AsyncGenerator<void, void>,
  tenant: string,
  kill: Kill,
  { log }: AdminServices
): Promise<void> {
  try {
    for await (const _page of ends);
  } catch (err) {
    log.error(
      { err, tenant, kind: kill.kind },
      'not all sessions of what was stopped have ended; nobody can use them. Stop it once more to end the others'
    )
  }
}

/** Nobody has to say twice what is stopped already. @throws AdminProblem not_found */
async function checkPut({ administrator, params }: AdminRequest, services: AdminServices, kill: Kill): Promise<void> {
  const { tenant: id = '' } = params
  const tenant = services.snapshot().tenants.get(tenantId(id))
  const isStopped = services.control.killsOf(id)?.some((each) => isSameKill(each, kill)) === true
  if (tenant === undefined || isStopped) return
  await checkKnown(kill, { tenant: tenant.unstopped ?? tenant, services, charge: administrator.charge })
}

async function setKill(
  { administrator, address, params }: Omit<AdminRequest, 'query'>,
  services: AdminServices,
  kill: Kill,
  verb: 'put' | 'delete'
): Promise<SwitchedKill> {
  const { tenant = '' } = params
  const { name, role } = administrator
  const change = { actor: name, role, action: `kill.${verb}`, tenant, target: killedText(kill), address }
  const switched = await services.control
    .switchKill({ author: { name, role }, tenant, kill, verb })
    .catch((error: unknown) => {
      if (error instanceof ControlError && error.code === 'forbidden') recordRefusedChange(services, change, error.code)
      throw error
    })
  const { isChanged } = switched
  const endsSessions = verb === 'put' && holdsSessions(kill)
  // Of what is stopped already it can be asked again and again, and nobody waits for all of it.
  if (endsSessions && !isChanged)
    administrator.charge(charsOfRecords(await services.sessions.index.count(tenantId(tenant), sessionsLookedAt)))
  const recorded =
    isChanged &&
    recordChange(services, {
      ...change,
      before: verb === 'put' ? undefined : changeHash(kill),
      after: verb === 'put' ? changeHash(kill) : undefined
    })
  // Also where it was stopped before: a process may have died while it ended sessions.
  await Promise.all([recorded, endsSessions && endSessionsOf(tenant, kill, services)])
  return switched
}

const routesOf = ([path, what, killOf]: (typeof switches)[number]): AdminRoute[] => {
  const shared = {
    path: `/v1/tenants/{tenant}/kills${path}`,
    roles: administrators,
    tenantMayBeMissing: true
  } as const
  return [
    defineRoute(
      {
        ...shared,
        method: 'PUT',
        summary: `Stops ${what}. Calls in flight are cancelled.`,
        query: PutQuery,
        response: KillEntry,
        creates: true
      },
      async (request, services) => {
        const kill = killOf(request.params)
        if (request.query.force !== 'true') await checkPut(request, services, kill)
        const { kill: put, isNew } = await setKill(request, services, kill, 'put')
        if (put === undefined) throw new Error('what was stopped is no kill switch')
        const [entry] = entriesOf([put], services.snapshot().tenants.get(tenantId(request.params['tenant'] ?? '')))
        return new AdminReply(entry, {}, isNew ? 201 : 200)
      }
    ),
    defineRoute(
      {
        ...shared,
        method: 'DELETE',
        summary: 'Takes a kill switch back. Only a platform-admin takes back what a platform-admin has stopped.'
      },
      async (request, services) => void (await setKill(request, services, killOf(request.params), 'delete'))
    )
  ]
}

/** Returns the kills as entries, without the digests by which a target is recognised. */
const entriesOf = (kills: readonly DatedKill[], tenant: Tenant | undefined): Array<Static<typeof KillEntry>> => {
  const alsoStopped = tenant && alsoStoppedIn(tenant.unstopped ?? tenant)
  return kills.map((kill) => {
    const { at, by, role, same } = kill
    const also = alsoStopped?.(stoppedThing(kill), same) ?? new Set<string>()
    return {
      ...stoppedThing(kill),
      at,
      by,
      ...(role !== undefined && { role }),
      also: [...also],
      besides: besidesOf(same, also)
    }
  })
}

export const killRoutes: readonly AdminRoute[] = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/kills',
      roles: everyRole,
      summary: 'Lists the kill switches of a tenant.',
      tenantMayBeMissing: true,
      query: closedObject(pageQuery),
      response: pageSchema(KillEntry)
    },
    ({ params: { tenant = '' }, query }, { control, snapshot }) => {
      const kills = control.killsOf(tenant)
      if (kills === undefined) throw noSuch('tenant')
      // A caller x of "y of z" reads like "x of y" of z.
      const found = page(kills, (kill) => `${killedText(kill)} ${'issuer' in kill ? kill.issuer : ''}`, query)
      return { ...found, items: entriesOf(found.items, snapshot().tenants.get(tenantId(tenant))) }
    }
  ),
  ...switches.flatMap(routesOf)
]
