// The schema of `limits` of a tenant: how many calls are made, of whom and of what.

import { WhatSchema, WhoSchema } from './policy.ts'
import { closedObject, defaulted, record } from './parts.ts'
import { Type } from './type.ts'

const number = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }))

export const CallLimitSchema = closedObject(
  {
    per: defaulted(
      Type.Array(Type.Enum(['principal', 'key', 'upstream', 'tool'] as const), {
        default: [],
        uniqueItems: true,
        description:
          'What is counted apart: each caller (`principal`: issuer and subject, or API key), each API key (`key`; ' +
          'other callers are not limited then), each `upstream`, each `tool`. Not given: all calls of the tenant ' +
          'together.'
      })
    ),
    who: defaulted(WhoSchema),
    what: defaulted(WhatSchema),
    perSecond: number('Calls a second, for long. So many may come at once after a pause, or `burst`.'),
    perMinute: number('The same a minute.'),
    perHour: number('The same an hour.'),
    burst: number('How many may come at once after a pause, in place of those of a second, minute or hour.'),
    perDay: number('Calls a day, from midnight to midnight UTC.'),
    perMonth: number('Calls a month, from the first to the last day, UTC.'),
    concurrent: number('Calls that may run at once, at each gateway process.')
  },
  { title: 'limit of calls' }
)

export const optionalCallLimits = Type.Optional(
  record(
    {
      pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$',
      patternErrorMessage:
        'must be letters, digits, "_", "." and "-", start with a letter or a digit, and have at most 63 characters'
    },
    CallLimitSchema,
    {
      maxProperties: 100,
      description:
        'How many tools may be called, prompts got and resources read, by whom ([call-limits.md](call-limits.md)), ' +
        'by name. Each holds over all gateway processes on one store. A call has to be within all that are about it.'
    }
  )
)
