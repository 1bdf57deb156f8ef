// docs/admin-api.md, from the table of routes.

import { adminRoles } from '../src/config/schema/admin.ts'
import type { Shape } from '../src/config/shape.ts'
import { problemTable } from '../src/admin/problem.ts'
import type { AdminRoute } from '../src/admin/route.ts'
import { adminRoutes } from '../src/admin/table.ts'

const intro = `# Admin API

*Written by \`npm run docs\` from the table of routes in src/admin; do not edit.*

For those who run the gateway: what is configured, how upstreams do, who has sessions, what a caller sees and why; and to make and change tenants while it runs. It listens on a port of its own,
by default not at all. It is not for MCP clients: admin keys open no endpoint, and API keys and tokens of tenants open nothing here.

## Switch it on

\`\`\`
gatehouse admin-key new --name ops --role platform-admin > ops.key
\`\`\`

prints the key, which is not shown again, and on standard error the lines for the configuration, which knows its SHA-256 only:

\`\`\`yaml
admin:
  listen: { host: 127.0.0.1, port: 8081 }
  keys:
    - { name: ops, role: platform-admin, sha256: ... }
\`\`\`

\`\`\`
curl -H "Authorization: Bearer $(cat ops.key)" http://127.0.0.1:8081/v1/tenants
\`\`\`

Keys can be added and taken away while the gateway runs; the address needs a restart. Beyond loopback the listener needs a proxy that speaks TLS before it, and
\`behindTlsProxy: true\`; list the name that clients use under \`admin.hosts\`. Behind a proxy all requests come from its address, which the log and the limits of
an address then mean. A process answers for itself where it says so (connections of upstreams); sessions are those of all processes on the store.

## Administrators of an identity provider

Besides keys, people may come with an access token of an issuer that the configuration names:

\`\`\`yaml
admin:
  keys: [...]
  oidc:
    audience: https://admin.example.com
    issuers:
      - issuer: https://idp.example.com
    access:
      - { role: platform-admin, groups: [platform-team] }
      - { role: tenant-admin, tenants: [acme], groups: [acme-admins] }
      - { role: auditor, roles: [audit] }
\`\`\`

The token is checked as those of tenants are ([authentication.md](authentication.md)), must name \`audience\` and nothing else in \`aud\`, and opens no endpoint; tokens for endpoints open nothing here. The first entry of
\`access\` that fits says the role; whoever fits none is answered by 403. Changes are recorded under subject and issuer. Who is taken out of \`access\`, or loses a group, is out with the next token, and at once where the configuration
changes. Keep a key for when the provider is away. \`client_id\` and \`sub\` are needed in the token; \`issuers\` takes all that issuers of a tenant take, such as \`provider\` and \`claims\`.

## What holds for every request

- This page is at \`/reference\` of the listener, too, for a browser and without a key; \`GET /openapi.json\` has it for programs (OpenAPI 3.1).
- The key, or the token, goes into \`Authorization: Bearer KEY\` and nowhere else. There are no CORS headers, and no answer to a page of another origin; the one cookie is that of the [console](console.md), and worth nothing without a token that only its page has: no browser can be made to call.
- Bodies are JSON objects. Unknown members, and parameters of a query that the route does not have, are refused. What a route does not name, it does not tell: values of headers,
  environment variables and digests of keys are in no answer; arguments of processes and paths of URLs only in \`configuration\`, for those who may change it.
- A tenant that the key is not for is answered exactly like one that there is not.
- Lists come in pages: \`limit\` (50, at most 200) and \`cursor\`, the \`nextCursor\` of the page before.
- Too many requests with one key are answered by 429 ([limits.md](limits.md)). Many without a right key from one address are, too, and the log warns of wrong keys, once a minute;
  a right key is let in nevertheless, from the same address as well.
- A change is logged, and recorded in the audit log where there is one ([audit.md](audit.md)): who made it, from where, and digests of what was there before and after.

## Tenants made here

What the configuration file says is changed in the file: here it is read-only (\`managed_by_file\`). Other tenants are made by \`PUT /v1/tenants/{tenant}\`, with what the
file would hold under \`tenants.{id}\` ([config.md](config.md)), in JSON, and kept in the store. The file may be \`tenants: {}\`.

- A change is judged as a whole, as the file is, and refused with the place of each fault (422) where it cannot be used; then nothing is written. It is in force at the process that
  answers when it answers, and at all others within a second. Sessions go on: they are told of changed lists, and end with their tenant or endpoint.
- A tenant has one version number, which grows with each change of anything in it. It is the \`ETag\` of the tenant, its upstreams and its endpoints. Whoever changes or removes what is there sends
  it as \`If-Match\` (428 without it, 412 where somebody else was first); what is put as it is already is answered by 200 and changes nothing, but with \`If-None-Match: *\` by 412, as whatever is there.
- Secrets (values of \`headers\` and \`env\`, API keys) can be written and never read: \`configuration\` has \`{"secret": true}\` in their place. Sent back so, the secret stays as it is, unless the upstream
  would then lead elsewhere. References such as \`\${NAME}\` are shown, and are resolved at each process; paths are absolute.
- \`reserved\` of a tenant names parts that only a platform-admin changes: \`reserved: [policy, audit, limits/everybody]\`.
  What reserved rules look at (scopes and names of keys, issuers, tags) a tenant-admin gives nobody, but for the scopes that \`grantableScopes\` lists ([policy.md](policy.md#rules-that-a-tenant-admin-cannot-get-around)).
- A tenant-admin changes what its key is for, and reaches nothing beyond it: hosts of upstreams, issuers and the provider of a login front only from \`admin.allowedHosts\`, no programs, no references; and where a platform-admin
  gave references, it leaves that part as it is.
  A host below \`*.\` is reached at public addresses and port 443 only (and \`egress.ports\`; an upstream at another port is refused, but where \`egress.allow\` opens ranges), as is one that the list has no more; one that is listed by its own name, wherever it is ([connections.md](connections.md#where-the-gateway-goes-for-it)).
  What such an issuer says of itself (its \`jwks_uri\`, its token endpoint) leads to its own origin or to those hosts, too: where it does not, a platform-admin gives \`jwksUri\`.
- Programs are started by upstreams of a platform-admin only, and only those of \`admin.allowedCommands\`, which may name their digests, too. Where that list becomes shorter, upstreams whose program it no longer has are left out at once.
- \`POST /v1/plan\` says what a change would do: which tools an endpoint gains and loses, and which prompts, resources and templates (\`others\`), which of its keys and of today's callers gain and lose which (\`callers\`, rules and scopes included), how many sessions are told, which processes end. \`POST /v1/apply\` makes it, for several tenants all or nothing,
  and refuses where somebody else was first. \`GET /v1/versions\` says who changed what: the last hundred changes of all, and with \`?tenant=\` the last twenty of one, however often others change; \`POST /v1/rollback\` takes an earlier version up again, as a new one, whose hosts are still those of whoever named them first; with the ETag of its plan as \`If-Match\` only where nobody was first.
  It brings back no API key that was revoked since: of those of then, a tenant has only the ones that it has now, or had when it was removed.
- \`gatehouse export\` writes the tenants made here as a configuration file has them, and \`gatehouse import FILE --into-store\` puts those of a file here ([cli.md](cli.md)): for a repository that says what there is. What was exported and not changed changes nothing.
  \`behindFile\` of plan and apply (\`--behind-file\`) puts a tenant of the configuration file here as well: it is in force once the file leaves the tenant out, and no session ends. A tenant that the file takes over is the file's from then on.
- \`POST …/upstreams/{upstream}/reconnect\` opens the connections to an upstream anew, whoever manages it, and starts its processes anew: after the calls that run, or at once.
- Kill switches (\`PUT /v1/tenants/{tenant}/kills/…\`) stop a tool, an upstream, a caller, a key or a whole tenant, also of the file: at every process within a second, calls in flight included, until they are taken back. An upstream or key that there is not is 404: it would stop nothing. Where the process that answers cannot use the newest document of the tenant, what that document has is there, too.
  What is stopped stays so under other names: an upstream, or a tool of one, also at any upstream of the tenant that leads to the same server from then on, and a key as whatever key of the same secret. The same server is the same host, port and path, however they are spelt, with whatever query:
  a parameter more or less leads around nothing, and an upstream that is added with another one is stopped, too. The answer of PUT (201, or 200 where it was stopped already) has these names as \`also\`, as \`GET …/kills\` has, and as \`besides\` those that led there already when it was stopped: they were not meant, and go on as long as they are there with the query that they had.
  Look at \`besides\`, and stop what leads around it. A kill switch that an earlier version put holds its name alone: put it again. Another host name or path that leads to the same server is not recognised: stop the tenant, or take the host out of \`admin.allowedHosts\`.
  What a platform-admin has stopped only a platform-admin takes back. They survive restarts and rollbacks, and \`explain\` tells them. They go with a tenant that is removed: made anew by PUT or apply it has none; brought back by a rollback it has those that it had last.
  All sessions of a caller, a key or a tenant that is stopped end: of many, those opened before the newest 50 of the tenant after the answer. They are refused from the start; where the process dies meanwhile, the same \`PUT\` again ends the others. A task that its server runs by itself goes on there.
- What goes on can be listened to, with \`Accept: text/event-stream\`: calls as they end (\`GET /v1/calls\`, \`GET /v1/tenants/{tenant}/calls\`) and audit records as they are made (\`GET /v1/tenants/{tenant}/audit\`), from every process on the store.
  Nothing is kept for a reader that is away; one that does not read, or whose key is taken away, is let go of and told why. \`curl -N -H "Accept: text/event-stream" …\` shows it.
- \`POST …/endpoints/{endpoint}/try\` calls a tool as whoever the credential in its body is, at the gateway's own listener: an administrator gains nothing by it. Where a server asks for more (\`resultType: input_required\`), the
  answers are sent as \`inputResponses\` with the \`requestState\` that came, to the same route. What is tried is in the audit log twice: who tried it, and the call.
- Every POST that makes, changes or does something takes an \`Idempotency-Key\` (a UUID): sent again with it, it is not done again and gets the answer of the first time, for a day. While the first one runs it is 409; so is another request with the same key, and one
  whose answer was too long to be kept. What was refused is judged again. Others (plan, catalog, explain, doctor) change nothing, and need none; nor do PUT, PATCH and DELETE.
- A 503 says that the store does not answer: then the change was not made, or, where its answer was lost, made whole. Read, and see.
- Where the document of a tenant cannot be used at one process (a variable is not set there), the tenant stays there as it was, the log says why, and so does \`problems\` of \`GET /v1/tenants/{tenant}\`. Nobody else is
  kept from anything: the process stays ready. One that has started with such a document does not have the tenant at all: \`/health/ready\` says so in \`tenants\`, with 200, \`GET /v1/problems\` names the tenant,
  and requests for any tenant that is not there are answered by 503, not 404, so that hosts do not take their sessions for ended. The process is not ready before it has read the documents for the first time.

A refusal is a problem (RFC 9457, \`application/problem+json\`): \`detail\` says what is wrong, \`instance\` where, \`remedy\` what to do, and \`errors\` names each fault of a body or query. A body that has one member twice is refused by its name.
`

function rolesTable(): string {
  const rows = adminRoutes.map(
    (route) =>
      `| \`${route.method} ${route.path}\` | ${adminRoles.map((role) => (route.roles.includes(role) ? 'yes' : '')).join(' | ')} |`
  )
  return `## Who may use what

A test asks for every route with every role, and without.

| route | ${adminRoles.join(' | ')} |
|---|${adminRoles.map(() => '---|').join('')}
${rows.join('\n')}
`
}

function problemsTable(): string {
  const rows = Object.entries(problemTable).map(
    ([code, [status, title]]) => `| \`urn:gatehouse:problem:${code}\` | ${status} | ${title} |`
  )
  return `## Problems

| type | status | title |
|---|---|---|
${rows.join('\n')}
`
}

const nameOf = (schema: Shape): string => {
  if (schema.anyOf !== undefined) return schema.anyOf.map(nameOf).join(' or ')
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (schema.type === 'array') return `list of ${nameOf(schema.items ?? {})}`
  if (schema.type === 'object') return 'object'
  return schema.type ?? 'any'
}

/** Of a page, those of its entries. */
function members(schema: Shape): string[] {
  const entry = schema.properties?.['items']?.items
  const shown = Object.entries({ ...(entry ?? schema).properties, ...(entry && { ...schema.properties }) })
  return shown
    .filter(([name]) => entry === undefined || !['items', 'nextCursor'].includes(name))
    .map(([name, each]) => `| \`${name}\` | ${nameOf(each)} | ${(each.description ?? '').replaceAll('|', '\\|')} |`)
}

const table = (title: string, rows: readonly string[]): string[] =>
  rows.length === 0 ? [] : [`${title}\n\n| member | kind | meaning |\n|---|---|---|\n${rows.join('\n')}`]

/** Told in docs/config.md. */
const isTold = ({ path }: AdminRoute): boolean => path === '/v1/limits'

function routeSection(route: AdminRoute): string {
  const { method, path, summary, query, body, response, events } = route
  const shapes = [query, body, response] as readonly (Shape | undefined)[]
  const [ofQuery = [], ofBody = [], ofResponse = []] = shapes.map((shape) =>
    shape === undefined ? [] : members(shape)
  )
  const isPage = (response as Shape | undefined)?.properties?.['items'] !== undefined
  return [
    `### ${method} ${path}`,
    summary,
    ...table('Query:', ofQuery),
    ...table('Body:', ofBody),
    ...(isTold(route)
      ? ['Answer: `limits` of [config.md](config.md).']
      : table(isPage ? 'Each of `items`:' : 'Answer:', ofResponse)),
    ...(response === undefined && events === undefined ? ['Answer: 204.'] : []),
    ...(events === undefined ? [] : [`Events: ${events}`])
  ].join('\n\n')
}

export const adminMarkdown = (): string =>
  [intro, rolesTable(), problemsTable(), '## Routes\n', `${adminRoutes.map(routeSection).join('\n\n')}\n`].join('\n')
