// The schemas of responses of the audit routes, besides the records.

import { gatewayItself } from '../../audit/audit.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { pageSchema } from '../paging.ts'

export const Verification = closedObject({
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

export const Heads = pageSchema(
  closedObject({
    chain: Type.String({ description: 'The run of a process.' }),
    seq: Type.Integer({ description: 'Its records so far.' }),
    hash: Type.String({ description: 'SHA-256 of the last one, base64url.' }),
    time: Type.String({ description: 'RFC 3339.' }),
    retentionMs: Type.Optional(Type.Integer({ description: 'For how long its records are kept.' })),
    madeRoom: Type.Boolean({ description: 'Its oldest records had to go for those of others.' })
  })
)

export const Trails = pageSchema(
  closedObject({
    trail: Type.String({ description: `The id of a tenant, or \`${gatewayItself}\`: of what is of no tenant.` }),
    of: Type.Enum(['gateway', 'tenant', 'removed tenant'] as const)
  })
)

export const verificationEvents =
  '`event: read` with each segment (`{ "segments", "of" }`), then one `event: report`, whose `data` is the ' +
  'answer without events, or `event: problem` with `detail`.'
