// Audit records, as they are made and as they are kept; and whether they are whole.

import type { Static } from 'typebox'
import { loadAuditKeys } from '../../audit/keys.ts'
import { readAuditBackwards, verifyStoredAudit, type Verifying } from '../../audit/read.ts'
import type { AuditConfig } from '../../config/snapshot.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { createPlaces } from '../clients/own-way.ts'
import { foreignCursor, pageQuery, pageSchema } from '../paging.ts'
import { AdminProblem } from '../problem.ts'
import { AdminStream, defineRoute, type AdminServices } from '../route.ts'
import { perEvent, streamOf } from './routes.ts'

/** At once, in one process, by administrators of tenants, and by those of all. Each reads its segments in turn. */
const maxVerifications = 8
const maxVerificationsByPlatform = 4
/** Of them, those of one tenant. */
const maxVerificationsOfTenant = 1
const placesFor = (max: number) =>
  createPlaces(max, 'Too many audit logs are being verified.', maxVerificationsOfTenant)
/** Whoever may have altered a log keeps nobody else from verifying it: not their own auditors, not those of all. */
const [placesOfTenants, placesOfPlatform] = [placesFor(maxVerifications), placesFor(maxVerificationsByPlatform)]

const readers = ['platform-admin', 'tenant-admin', 'auditor'] as const

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

const Verification = closedObject({
  isWhole: Type.Boolean({
    description: 'false: only the newest 64 segments, of about a mebibyte each, were read.'
  }),
  records: Type.Integer(),
  chains: Type.Integer({ description: 'Runs of processes.' }),
  signatures: Type.Integer(),
  keys: Type.Array(closedObject({ key: Type.String(), isOwn: Type.Boolean() }), {
    description:
      'Public keys that the records name, and whether each is the one that this gateway signs with. Another one is ' +
      'that of an earlier configuration, or of whoever wrote the records anew.'
  }),
  problems: Type.Array(Type.String(), { description: 'What was altered, removed, inserted or cut off.' }),
  notes: Type.Array(Type.String(), { description: 'What may be as it should be.' })
})

export const auditRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/audit',
      roles: readers,
      summary:
        'Audit records of a tenant ([audit.md](audit.md)), the newest first as far as one process wrote them; with ' +
        'Accept: text/event-stream those that are made from now on, at every process: an `event: audit` for each. A ' +
        'page may be empty and have a `nextCursor`: it is looked further from there.',
      query: closedObject({
        kind: Type.Optional(Type.String({ maxLength: 32, description: 'Only of this kind, such as `change`.' })),
        since: time('Only those made at this time or later (RFC 3339).'),
        until: time('Only those made before this time (RFC 3339).'),
        ...pageQuery
      }),
      response: pageSchema(Type.Object({}, { description: 'A record.' })),
      events: perEvent
    },
    async ({ tenant, query: { since, until, ...query }, wantsEvents }, services) => {
      recorded(services)
      if (wantsEvents) return streamOf(services, 'audit', new Set([tenant.id]))
      kept(services)
      const range = { since: timeOf('since', since), until: timeOf('until', until) }
      const found = await readAuditBackwards(services.store, tenant.id, { ...query, ...range })
      if (found === undefined) throw foreignCursor()
      return { items: found.lines.map((line) => JSON.parse(line) as object), nextCursor: found.nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/audit/verification',
      roles: readers,
      summary:
        'Whether the newest audit records of a tenant are whole, as `gatehouse audit verify` says it; with Accept: ' +
        'text/event-stream, whether all are that the store keeps.',
      response: Verification,
      events:
        '`event: read` with each segment (`{ "segments", "of" }`), then one `event: report`, whose `data` is the ' +
        'answer without events, or `event: problem` with `detail`.'
    },
    async ({ tenant, administrator, wantsEvents }, services) => {
      const { signingKey } = kept(services)
      const { store, wall, log } = services
      const free = (administrator.tenants === undefined ? placesOfPlatform : placesOfTenants).take(tenant.id)
      const verify = async (how: Verifying): Promise<Static<typeof Verification>> => {
        try {
          const { publicKey } = await loadAuditKeys(signingKey, store)
          const { keys, problems, notes, ...counts } = await verifyStoredAudit(store, tenant.id, wall.now(), how)
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
              log.warn({ err, tenant: tenant.id }, 'an audit log cannot be verified')
              send('problem', JSON.stringify({ detail: 'The records cannot be read now.', remedy: 'Try again.' }))
            }
          )
          .finally(end)
        return () => stop.abort()
      }, free)
    }
  )
] as const
