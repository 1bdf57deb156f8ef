// The schemas of responses of the audit routes, besides the records.

import { gatewayItself } from '../../audit/audit.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { pageSchema } from '../paging.ts'

export const Verification = closedObject({
  isWhole: Type.Boolean({
    description: 'Whether all records were read. false: only the newest 64 segments, of about a mebibyte each.'
  }),
  records: Type.Integer(),
  chains: Type.Integer({ description: 'Number of chains that were read. Each run of a process writes one.' }),
  signatures: Type.Integer(),
  keys: Type.Array(closedObject({ key: Type.String(), isOwn: Type.Boolean() }), {
    description:
      'Public keys that the records name, and whether this gateway signs with each (`isOwn`). Another key is that ' +
      'of an earlier configuration, or of somebody who has rewritten the records.'
  }),
  problems: Type.Array(Type.String(), { description: 'Records that were altered, removed, inserted or cut off.' }),
  notes: Type.Array(Type.String(), { description: 'Findings that may be harmless.' })
})

export const Heads = pageSchema(
  closedObject({
    chain: Type.String({ description: 'Id of the chain, which is the run of a process.' }),
    seq: Type.Integer({ description: 'Number of records of the chain so far.' }),
    hash: Type.String({ description: 'SHA-256 of the last record, base64url.' }),
    time: Type.String({ description: 'RFC 3339.' }),
    retentionMs: Type.Optional(Type.Integer({ description: 'How long its records are kept, in milliseconds.' })),
    madeRoom: Type.Boolean({ description: 'Whether its oldest records were deleted to make room for those of others.' })
  })
)

export const Trails = pageSchema(
  closedObject({
    trail: Type.String({ description: `Id of a tenant, or \`${gatewayItself}\` for records that are of no tenant.` }),
    of: Type.Enum(['gateway', 'tenant', 'removed tenant'] as const)
  })
)

export const verificationEvents =
  '`event: read` after each segment, with the numbers of read and of all segments (`{ "segments", "of" }`). Then ' +
  'one `event: report`, whose `data` is the answer without events, or `event: problem` with `detail`.'
