// An endpoint, the virtual MCP server of a tenant: whose tools, prompts and resources it offers, which of them, how it
// shows them, and to whom: the rules of its policy.

import { closedObject, defaulted, list, record, requiredScopes } from './parts.ts'
import { optionalPolicy } from './policy.ts'
import { Type } from './type.ts'

const prefix = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_.-]{0,32}$',
      patternErrorMessage: 'must be at most 32 letters, digits, "_", "." or "-"',
      description
    })
  )

const MemberSchema = closedObject(
  {
    upstream: Type.String({ description: 'Name of an upstream of this tenant.' }),
    prefix: prefix(
      'Put before the names of its tools and prompts. Empty: the names stay as they are. Default: the prefix of ' +
        'the endpoint, else the name of the upstream.'
    )
  },
  { title: 'member' }
)

const pattern = Type.String({
  pattern: '^[^\\x00-\\x1f]{1,1024}$',
  patternErrorMessage: 'must have 1 to 1024 characters, on one line'
})
const patterns = (of: string) => Type.Optional(Type.Array(pattern, { description: `Patterns of ${of}.` }))
const byKind = (description: string) =>
  Type.Optional(
    closedObject(
      {
        tools: patterns('tools'),
        prompts: patterns('prompts'),
        resources: patterns('URIs of resources'),
        templates: patterns('templates of URIs')
      },
      { description }
    )
  )

const text = (maxLength: number, description: string) => Type.Optional(Type.String({ maxLength, description }))
const hint = (description: string) => Type.Optional(Type.Boolean({ description }))

const resultBytes = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_073_741_824, description }))

const toolArguments = (description: string) =>
  Type.Optional(record({ pattern: '^[^\\x00-\\x1f]{1,256}$' }, Type.Unknown(), { description }))

export const ToolChangeSchema = closedObject(
  {
    rename: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_.-]{1,64}$',
        patternErrorMessage: 'must be 1 to 64 letters, digits, "_", "." or "-"',
        description: 'Its whole public name; no prefix is put before it. The name of before leads nowhere.'
      })
    ),
    title: text(200, 'In place of the title of the server.'),
    description: text(20_000, 'In place of the description of the server.'),
    annotations: Type.Optional(
      closedObject(
        {
          title: text(200, 'The title that older revisions show.'),
          readOnlyHint: hint('It changes nothing.'),
          destructiveHint: hint('It may destroy or overwrite.'),
          idempotentHint: hint('A second call changes nothing more.'),
          openWorldHint: hint('It reaches things outside of the server.')
        },
        {
          description:
            'Annotations of MCP, added to those of the server or in their place. Hints that are true are the tags ' +
            '`readOnly`, `destructive`, `idempotent` and `openWorld` for rules, too ([policy.md](policy.md)).'
        }
      )
    ),
    fixed: toolArguments(
      'Arguments that the gateway sends with every call. They are hidden from `inputSchema`, and a caller that sends ' +
        'one of them gets the error `invalid_params`, which names it. What comes from references is masked where the ' +
        'server says it.'
    ),
    defaults: toolArguments(
      'Arguments that the gateway sends where the caller leaves them out. `inputSchema` shows them as `default` and ' +
        'requires them no more. Those that come from references are not shown, and masked where the server says them.'
    ),
    omit: Type.Optional(
      Type.Array(Type.String({ format: 'json-path', maxLength: 512 }), {
        minItems: 1,
        maxItems: 100,
        description:
          'JSON paths of what its results are shown without, such as `$.customer.email` or `$.items[*].price`: of ' +
          '`structuredContent`, and of texts that are JSON. `outputSchema` is shown without them, too.'
      })
    ),
    maxResultBytes: resultBytes('In place of `maxResultBytes` of the endpoint.'),
    requires: requiredScopes('Scopes that a call of it needs: `requires: { scopes: [files.write] }`.')
  },
  { title: 'changes of a tool' }
)

export const EndpointSchema = closedObject({
  upstreams: Type.Array(Type.Union([Type.String({ title: 'name of an upstream' }), MemberSchema]), {
    minItems: 1,
    description:
      'The upstreams behind this endpoint: names, or `{ upstream, prefix }`. Of two that claim the same name, the ' +
      'one that stands first here has it.'
  }),
  prefix: prefix(
    'Put before the names of the tools and prompts of every member. Empty: the names stay as they are. ' +
      'Default: the name of each upstream.'
  ),
  separator: defaulted(
    Type.String({
      pattern: '^[A-Za-z0-9_.-]{1,8}$',
      patternErrorMessage: 'must be 1 to 8 letters, digits, "_", "." or "-"',
      default: '__',
      description: 'Stands between a prefix and a name.'
    })
  ),
  instructions: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description:
        'Instructions for the model, sent in the response to `initialize`. Default: the instructions of the ' +
        'upstreams.'
    })
  ),
  allow: byKind(
    'What is offered: for `tools`, `prompts`, `resources`, `templates` a list of patterns over UPSTREAM/NAME, where ' +
      'NAME is the name or URI at the upstream and `*` stands for any text. A kind that is not named is offered whole.'
  ),
  deny: byKind('What is not offered, in the same form. It wins over `allow`.'),
  tools: Type.Optional(
    record(
      {
        pattern: '^[^/*]+/[^\\x00-\\x1f]+$',
        patternErrorMessage: 'must be UPSTREAM/TOOL, by the name of the tool at its upstream, such as files/read'
      },
      ToolChangeSchema,
      {
        description: 'Changes of single tools, by UPSTREAM/NAME.'
      }
    )
  ),
  order: list(
    pattern,
    'Patterns over UPSTREAM/NAME: tools that match the first one are listed first, and so on; all others follow.'
  ),
  maxTools: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description:
        'How many tools are offered at most: the first ones in the order of the list. The rest cannot be called.'
    })
  ),
  audiences: list(
    Type.String({ format: 'audience' }),
    'Further values of `aud` that stand for this endpoint alone, for issuers that cannot name its URL.'
  ),
  maxCatalogBytes: Type.Optional(
    Type.Integer({
      minimum: 1024,
      maximum: 1_073_741_824,
      description:
        'How long the list of tools may be, in bytes of JSON: the first ones in the order of the list that fit. The ' +
        'rest cannot be called.'
    })
  ),
  maxResultBytes: resultBytes(
    'How long the answer to a call of a tool, a prompt or a read of a resource may be, in bytes. In place of a ' +
      'longer one the caller gets an error that says so: of a tool a result with `isError`, from which a model sees ' +
      'to ask for less.'
  ),
  requires: requiredScopes(
    'Scopes without which nobody uses this endpoint, besides `requiredScopes` of the tenant: `requires: { scopes: ' +
      '[support] }`.'
  ),
  listsByScopes: Type.Optional(
    Type.Boolean({
      description:
        'Lists show only what the scopes of the caller allow. Not given: they show what a token with more scopes ' +
        'would unlock, too. A call without them is answered with 403 and their names in both cases.'
    })
  ),
  policy: optionalPolicy(
    'Who may use what at this endpoint, in addition to the policy of the tenant: both have to allow.'
  )
})
