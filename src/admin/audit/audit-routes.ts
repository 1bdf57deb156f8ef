// Routes of the audit log: records as they are written, stored records, and the verification of the log; for a tenant,
// and for the trails without a tenant: those of the gateway itself and of removed tenants.

import type { Static } from 'typebox'
import { gatewayItself } from '../../audit/audit.ts'
import { loadAuditKeys } from '../../audit/keys.ts'
import { auditLines, readAuditBackwards, verifyStoredAudit, type Verifying } from '../../audit/read.ts'
import { keptHeads } from '../../audit/segments.ts'
import type { AuditConfig } from '../../config/snapshot.ts'
import { recordKinds } from '../../audit/chain.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { tenantId } from '../../protocol/messages.ts'
import { tenantsKey } from '../../store/keys.ts'
import type { Administrator } from '../access.ts'
import { exported } from '../answering/exported.ts'
import { createPlaces } from '../clients/own-way.ts'
import { foreignCursor, page, pageQuery, pageSchema } from '../paging.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import { AdminStream, defineRoute, maySee, type AdminRequest, type AdminRoute, type AdminServices } from '../route.ts'
import { perEvent, streamOf } from '../live/routes.ts'
import { Heads, Trails, Verification, verificationEvents } from './answers.ts'

/** The most concurrent verifications in a process, by administrators of tenants, and by those of all tenants. */
const maxVerifications = 8
const maxVerificationsByPlatform = 4
/** Of them, those of one tenant. */
const maxVerificationsOfTenant = 1
const placesFor = (max: number, message = 'Too many audit logs are being verified.') =>
  createPlaces(max, message, maxVerificationsOfTenant)
/** Separate limits, so that an administrator who altered a log cannot block its verification by others. */
const [placesOfTenants, placesOfPlatform] = [placesFor(maxVerifications), placesFor(maxVerificationsByPlatform)]
const tooManyExports = 'Too many audit logs are being exported.'
const exportsOfTenants = placesFor(maxVerifications, tooManyExports)
const exportsOfPlatform = placesFor(maxVerificationsByPlatform, tooManyExports)

const readers = ['platform-admin', 'tenant-admin', 'auditor'] as const
const readersOfTrails = ['platform-admin', 'auditor'] as const

/** @throws AdminProblem conflict where nothing is recorded */
function recorded({ snapshot }: Pick<AdminServices, 'snapshot'>): AuditConfig {
  const { audit } = snapshot()
  if (audit !== undefined) return audit
  throw new AdminProblem('conflict', 'Nothing is recorded.', 'Add audit: {} to the configuration file.')
}

/** @throws AdminProblem conflict where the store has no records */
function kept(services: Pick<AdminServices, 'snapshot'>): AuditConfig {
  const audit = recorded(services)
  if (audit.store) return audit
  throw new AdminProblem('conflict', 'Records are not kept in the store.', 'Read audit.file, or set audit.store.')
}

/** @throws AdminProblem invalid_request */
function timeOf(member: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = Date.parse(text)
  if (!Number.isNaN(time)) return time
  throw new AdminProblem('invalid_request', `"${member}" is no time.`, 'Write it like 2026-07-28T09:00:00Z.')
}

const time = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))

const wantedRecords = {
  kind: Type.Optional(Type.Enum(recordKinds, { description: 'Only records of this kind ([audit.md](audit.md)).' })),
  since: time('Only records made at this time or later (RFC 3339).'),
  until: time('Only records made before this time (RFC 3339).')
}

const recordsQuery = closedObject({
  ...wantedRecords,
  ...pageQuery
})

/** Trails outlast their tenants: those of removed ones are read by whoever could read them before. */
async function trailsFor(administrator: Administrator, { snapshot, store }: AdminServices) {
  const { tenants } = snapshot()
  const removed = (await store.entries(tenantsKey)).filter((id) => !tenants.has(tenantId(id)))
  const all = [
    { trail: gatewayItself, of: 'gateway' as const },
    ...[...tenants.keys()].map((trail) => ({ trail: String(trail), of: 'tenant' as const })),
    ...[...new Set(removed)].map((trail) => ({ trail, of: 'removed tenant' as const }))
  ]
  return all.filter(({ trail }) => maySee(administrator, trail))
}

/** @returns the trail that a request names: that of its tenant, or one that no tenant has now. @throws AdminProblem */
async function trailOf(request: AdminRequest, services: AdminServices): Promise<string> {
  const { trail } = request.params
  if (trail === undefined) return request.tenant.id
  if ((await trailsFor(request.administrator, services)).some((each) => each.trail === trail)) return trail
  throw noSuch('audit trail')
}

interface TrailRoutes {
  readonly of: '/v1/tenants/{tenant}/audit' | '/v1/audit/trails/{trail}'
  readonly roles: AdminRoute['roles']
  readonly whose: string
}

/** The same routes of a tenant, and of any trail. */
const routesOfTrail = ({ of, roles, whose }: TrailRoutes) => [
  defineRoute(
    {
      method: 'GET',
      path: of,
      roles,
      summary:
        `Lists the audit records of ${whose} ([audit.md](audit.md)); those of one process the newest first. A page ` +
        'may be empty and have a `nextCursor`, from which the search goes on. With Accept: text/event-stream it ' +
        'streams the records that are made from now on, at every process: an `event: audit` for each.',
      query: recordsQuery,
      response: pageSchema(Type.Object({}, { description: 'A record.' })),
      events: perEvent
    },
    async (request, services) => {
      const { query, wantsEvents } = request
      const { since, until, ...rest } = query
      recorded(services)
      const trail = await trailOf(request, services)
      if (wantsEvents) return streamOf(services, ['audit'], new Set([trail]))
      kept(services)
      const range = { since: timeOf('since', since), until: timeOf('until', until) }
      const found = await readAuditBackwards(services.store, trail, { ...rest, ...range })
      if (found === undefined) throw foreignCursor()
      return { items: found.lines.map((line) => JSON.parse(line) as object), nextCursor: found.nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: `${of}/export`,
      roles,
      summary:
        `Exports all audit records of ${whose} that the store has, of a kind and time, as JSON Lines: segment by ` +
        'segment, the oldest first. If the export fails midway, the response is cut off, without a final chunk.',
      query: closedObject(wantedRecords),
      response: Type.String({ description: 'JSON Lines (`application/jsonl`), as `audit verify` reads them.' })
    },
    async (request, services) => {
      const { administrator, query } = request
      kept(services)
      const trail = await trailOf(request, services)
      const wanted = { kind: query.kind, since: timeOf('since', query.since), until: timeOf('until', query.until) }
      const free = (administrator.tenants === undefined ? exportsOfPlatform : exportsOfTenants).take(trail)
      return exported(auditLines(services.store, trail, wanted), `audit-${trail}.jsonl`, free)
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: `${of}/heads`,
      roles,
      summary:
        `Lists the newest record that the gateway knows of each chain of ${whose}. \`gatehouse audit verify\` ` +
        'compares records with these, to find records that were cut off at the end. Read them before the records, or ' +
        'keep them elsewhere.',
      query: closedObject(pageQuery),
      response: Heads
    },
    async (request, services) => {
      kept(services)
      const heads = await keptHeads(services.store, await trailOf(request, services))
      return page(heads, ({ chain }) => chain, request.query)
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: `${of}/verification`,
      roles,
      summary:
        `Verifies the newest audit records of ${whose}, like \`gatehouse audit verify\`. With Accept: ` +
        'text/event-stream it verifies all that the store keeps.',
      response: Verification,
      events: verificationEvents
    },
    async (request, services) => {
      const { administrator, wantsEvents } = request
      const { signingKey } = kept(services)
      const trail = await trailOf(request, services)
      const { store, wall, log } = services
      const free = (administrator.tenants === undefined ? placesOfPlatform : placesOfTenants).take(trail)
      const verify = async (how: Verifying): Promise<Static<typeof Verification>> => {
        try {
          const { publicKey } = await loadAuditKeys(signingKey, store)
          const { keys, problems, notes, ...counts } = await verifyStoredAudit(store, trail, wall.now(), how)
          return {
            ...counts,
            keys: keys.map((key) => ({ key, isOwn: key === publicKey })),
            problems: [...problems],
            notes: [...notes]
          }
        } finally {
          free()
        }
      }
      if (!wantsEvents) return await verify({})
      return new AdminStream((send, end) => {
        const stop = new AbortController()
        const passed = (segments: number, of: number): void => send('read', JSON.stringify({ segments, of }))
        void verify({ maxSegments: Infinity, signal: stop.signal, passed })
          .then(
            (report) => send('report', JSON.stringify(report)),
            (err: unknown) => {
              if (stop.signal.aborted) return
              log.warn({ err, tenant: trail }, 'an audit log cannot be verified')
              send('problem', JSON.stringify({ detail: 'The records cannot be read now.', remedy: 'Try again.' }))
            }
          )
          .finally(end)
        return () => stop.abort()
      }, free)
    }
  )
]

export const auditRoutes = [
  ...routesOfTrail({ of: '/v1/tenants/{tenant}/audit', roles: readers, whose: 'a tenant' }),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/audit/trails',
      roles: readersOfTrails,
      summary:
        'Lists the trails that may have audit records: of the gateway itself, of tenants, and of removed tenants.',
      query: closedObject(pageQuery),
      response: Trails
    },
    async ({ administrator, query }, services) => {
      kept(services)
      return page(await trailsFor(administrator, services), ({ trail }) => trail, query)
    }
  ),
  ...routesOfTrail({ of: '/v1/audit/trails/{trail}', roles: readersOfTrails, whose: 'a trail' })
]
