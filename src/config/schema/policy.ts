// The schema of a policy: who may use what, of a tenant or of an endpoint.

import type { Static } from 'typebox'
import { choice, closedObject, defaulted, patterns as patternList, scopes } from './parts.ts'
import { Type } from './type.ts'

const maxRules = 10_000
const maxTests = 500

export const routeKinds = ['tool', 'prompt', 'resource', 'template'] as const
/** What is decided about a caller and something of an endpoint. */
export const routeOutcomes = ['allowed', 'denied', 'refused', 'needs-scopes', 'depends', 'not-offered'] as const

const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }))

export const CallerSchema = closedObject(
  {
    subject: Type.Optional(Type.String({ description: '`sub` of a token.' })),
    issuer: Type.Optional(Type.String({ description: '`iss` of the token. Default: the first issuer of the tenant.' })),
    client: Type.Optional(Type.String({ description: '`client_id` of the token.' })),
    key: Type.Optional(Type.String({ description: 'The name of an API key, in place of a token.' })),
    scopes: texts('Default: those that the tenant requires, or those of the key.'),
    groups: texts('`groups` of the token.'),
    roles: texts('`roles` of the token.')
  },
  { description: 'Who calls. Not given: anybody whom the tenant lets in.' }
)

export const WhoSchema = closedObject(
  {
    issuers: Type.Optional(patternList('`iss` of the token.')),
    subjects: Type.Optional(
      patternList(
        '`sub` of the token. With several issuers, name the issuer too: subjects of two issuers are two people.'
      )
    ),
    clients: Type.Optional(patternList('Client ids of tokens.')),
    keys: Type.Optional(patternList('Names of API keys.')),
    scopes: Type.Optional(patternList('Scopes of the token or key.')),
    groups: Type.Optional(patternList('The claim `groups` of the token.')),
    roles: Type.Optional(patternList('The claim `roles` of the token.'))
  },
  {
    description:
      'Whom the rule is about: callers that have one of the values of each member that is given; not given: ' +
      'everybody. Every value is a pattern, in which `*` stands for any characters.'
  }
)

export const WhatSchema = closedObject(
  {
    upstreams: Type.Optional(patternList('Names of upstreams.')),
    names: Type.Optional(
      patternList('Names of tools and prompts as the upstream has them, URIs of resources, URI templates.')
    ),
    kinds: Type.Optional(
      Type.Array(Type.Enum(routeKinds), {
        minItems: 1,
        description: '`tool`, `prompt`, `resource`, `template`.'
      })
    ),
    tags: Type.Optional(
      Type.Array(Type.String({ maxLength: 63 }), { minItems: 1, description: 'Tags that the upstreams define.' })
    )
  },
  {
    description:
      'What the rule is about: what has one of the values of each member that is given; not given: everything. ' +
      'Upstreams and names are patterns.'
  }
)

export const RuleSchema = closedObject({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$',
    patternErrorMessage:
      'must be letters, digits, "_", "." and "-", start with a letter or a digit, and have at most 63 characters',
    description: 'What `explain` and the log call it.'
  }),
  effect: Type.Enum(['allow', 'deny', 'requires'] as const, {
    description:
      '`deny` wins over `allow`. `requires` denies nothing, but a call needs the `scopes` of the rule, too: a caller ' +
      'without them is told which to ask for.'
  }),
  who: defaulted(WhoSchema),
  what: defaulted(WhatSchema),
  scopes: scopes('The scopes that a rule with `effect: requires` requires, all of them.'),
  when: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_096,
      description:
        'A condition in CEL over the arguments of the call, the principal and the time ([policy.md](policy.md)); for ' +
        'tools and prompts. Not given: always.'
    })
  )
})

export const PolicyTestSchema = closedObject({
  endpoint: defaulted(
    Type.String({ default: 'default', maxLength: 63, description: 'At which endpoint, for a policy of the tenant.' })
  ),
  caller: defaulted(CallerSchema),
  kind: choice(routeKinds, 'tool', 'What it is.'),
  name: Type.String({
    minLength: 3,
    maxLength: 1_024,
    description: 'UPSTREAM/NAME, with the name or URI that the upstream itself gives it.'
  }),
  arguments: Type.Optional(Type.Unknown({ description: 'Those of the call, an object, for conditions.' })),
  at: Type.Optional(
    Type.String({ maxLength: 64, description: 'When the call is made (RFC 3339). Not given: when the test is run.' })
  ),
  expect: Type.Enum(routeOutcomes, { description: 'What has to be decided ([policy.md](policy.md)).' })
})

export type PolicyTest = Static<typeof PolicyTestSchema>

export const PolicySchema = closedObject({
  default: Type.Enum(['allow', 'deny'] as const, { description: 'For what no rule allows or denies.' }),
  rules: Type.Array(RuleSchema, { maxItems: maxRules, description: 'In any order.' }),
  tests: Type.Optional(
    Type.Array(PolicyTestSchema, {
      maxItems: maxTests,
      description:
        'What has to be so. They decide nothing: the [console](console.md) runs them, and a plan says which of them ' +
        'a change would break.'
    })
  )
})

/** Not an object by itself, which would be there where it is not given. */
export const optionalPolicy = (description: string) => Type.Optional(Type.Union([PolicySchema], { description }))
