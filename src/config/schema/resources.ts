// The schema of `resources` of a tenant: how much of the gateway it may use, below what the whole process allows.

import { closedObject } from './parts.ts'
import { Type } from './type.ts'

const number = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, description }))

export const optionalResources = Type.Optional(
  Type.Union(
    [
      closedObject(
        {
          sessions: number(1, 1_000_000, 'Sessions that may be open at once, at all gateway processes on one store.'),
          streams: number(
            1,
            1_000_000,
            'Streams that clients may listen on at once (GET of a session, HTTP+SSE, `subscriptions/listen`), at ' +
              'each gateway process. Answers of calls that are streams count as calls.'
          ),
          calls: number(1, 1_000_000, 'Requests that may run at once, at each gateway process.'),
          processes: number(
            1,
            100_000,
            'stdio processes that may run at once, at each gateway process: all of the tenant, those that lists are ' +
              'read from and `isolation: shared` too. An eighth of them is left to lists.'
          ),
          processBytes: number(
            16_777_216,
            1_099_511_627_776,
            'In place of `limits.processBytesPerTenant`, where it is less.'
          ),
          memoryBytes: number(
            4_194_304,
            1_099_511_627_776,
            'Memory of one gateway process that requests, answers, streams and subscriptions may hold, in bytes; one ' +
              'caller half of it. Less than half of what the process has for all of them, or it changes nothing.'
          ),
          catalogTools: number(1, 100_000, 'Tools that each endpoint offers; those after them are left out.'),
          catalogBytes: number(1_024, 268_435_456, 'The same of all tools of an endpoint together, as JSON, in bytes.'),
          resultBytes: number(1_024, 268_435_456, 'Of each answer of an upstream, in bytes.')
        },
        { title: 'resources' }
      )
    ],
    {
      description:
        'How much of the gateway this tenant may use ([call-limits.md](call-limits.md#resources-of-a-tenant)), which ' +
        'is never more than `limits` at the top allow. Only a platform-admin changes it by the admin API.'
    }
  )
)
