// docs/admin-api.md, from the table of routes.

import { adminRoles } from '../src/config/schema/admin.ts'
import type { Shape } from '../src/config/shape.ts'
import { problemTable } from '../src/admin/problem.ts'
import type { AdminRoute } from '../src/admin/route.ts'
import { adminRoutes } from '../src/admin/table.ts'

const intro = `# Admin API

*Written by \`npm run docs\` from the table of routes in src/admin; do not edit.*

With this API operators see what is configured, the state of upstreams, who has sessions, and what a caller sees and why. They make and change tenants with it while the gateway runs.
It listens on a port of its own, by default not at all. It is not for MCP clients: admin keys open no endpoint, and API keys and tokens of tenants open nothing here.

## Switch it on

\`\`\`
gatehouse admin-key new --name ops --role platform-admin > ops.key
\`\`\`

This prints the key, which is not shown again. On standard error it prints the lines for the configuration, which contain only the SHA-256 of the key:

\`\`\`yaml
admin:
  listen: { host: 127.0.0.1, port: 8081 }
  keys:
    - { name: ops, role: platform-admin, sha256: ... }
\`\`\`

\`\`\`
curl -H "Authorization: Bearer $(cat ops.key)" http://127.0.0.1:8081/v1/tenants
\`\`\`

- Keys can be added and removed while the gateway runs; a change of the address needs a restart.
- Beyond loopback the listener needs a proxy in front of it that speaks TLS, and \`behindTlsProxy: true\`. List the host name that clients use under \`admin.hosts\`. Behind a proxy all requests come from its address, which the log and the limits of an address then mean.
- A process answers for itself where a description says so (connections of upstreams). Sessions are those of all processes on the store.

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

- The token is checked as those of tenants are ([authentication.md](authentication.md)). It must name \`audience\` and nothing else in \`aud\`, and must have \`client_id\` and \`sub\`. It opens no endpoint; tokens for endpoints open nothing here.
- The first entry of \`access\` that fits gives the role; a person whom none fits gets 403. A person who is removed from \`access\`, or loses a group, is refused with the next token, and at once where the configuration changes.
- Changes are recorded under subject and issuer.
- \`issuers\` takes all that issuers of a tenant take, such as \`provider\` and \`claims\`.
- Keep a key for when the provider is away.

## What holds for every request

- **Documentation.** The listener serves this page at \`/reference\`, for a browser and without a key. \`GET /openapi.json\` is the same for programs (OpenAPI 3.1).
- **Authentication.** The key, or the token, is sent as \`Authorization: Bearer KEY\` and in no other way. There are no CORS headers, and pages of other origins get no answer. The one cookie is that of the [console](console.md), and worth nothing without a token that only its page has: no page can make a browser call this API.
- **Bodies** are JSON objects. Unknown members, and query parameters that the route does not have, are refused.
- **Secrets.** Values of headers and environment variables and digests of keys are in no answer. Arguments of processes and paths of URLs are only in \`configuration\`, for those who may change it.
- **Other tenants.** A tenant that the key is not for is answered exactly like one that does not exist.
- **Lists** come in pages: \`limit\` (50, at most 200) and \`cursor\`, the \`nextCursor\` of the page before.
- **Limits.** Too many requests with one key get 429 ([limits.md](limits.md)), and so do many without a valid key from one address. The log warns of wrong keys, once a minute. A valid key is admitted nevertheless, from the same address as well.
- **Records.** A change is logged, and recorded in the audit log where there is one ([audit.md](audit.md)): who made it, from where, and digests of the configuration before and after.
- **Repeated requests.** Every POST that changes or does something takes an \`Idempotency-Key\` (a UUID). A repeated request with the same key is not done again for a day, and gets the first answer. It gets 409 while the first request runs, if it is another request, or if the first answer was too long to be kept.
  A refused request is judged again. The other POST requests (plan, catalog, explain, doctor) change nothing and need no key; nor do PUT, PATCH and DELETE.
- **503** says that the store does not answer. Then the change was not made, or, where only its answer was lost, made whole: read the present state to find out.

## Tenants made here

Tenants of the configuration file are changed in the file; this API can only read them (\`managed_by_file\`). Other tenants are made by \`PUT /v1/tenants/{tenant}\`, with the same members as \`tenants.{id}\` of the file ([config.md](config.md)), in JSON. They are kept in the store. The file may have \`tenants: {}\`.

### Changes

- A change is checked as a whole, like the file. If it cannot be used, it is refused with the place of each fault (422), and nothing is written. It is in force at the process that answers when it answers, and at all others within a second. Sessions go on: they are told of changed lists, and end only with their tenant or endpoint.
- A tenant has one version number, which grows with each change of anything in it. It is the \`ETag\` of the tenant, its upstreams and its endpoints. To change or remove what exists, send it as \`If-Match\`: without it the answer is 428, and 412 if somebody else was first.
  A PUT of the present configuration gets 200 and changes nothing; with \`If-None-Match: *\` it gets 412, as for everything that exists.
- Secrets (values of \`headers\` and \`env\`, API keys) can be written and never read: \`configuration\` has \`{"secret": true}\` in their place. A request that sends this back leaves the secret as it is, unless the upstream would then lead elsewhere. References such as \`\${NAME}\` are shown, and are resolved at each process; paths are absolute.
- \`POST /v1/plan\` returns what a change would do: which tools, and which prompts, resources and templates (\`others\`), an endpoint gains and loses; which of these its keys and today's callers gain and lose, rules and scopes included (\`callers\`); how many sessions are told; which processes end.
- \`POST /v1/apply\` makes the change, for several tenants all or nothing, and refuses it where somebody else was first.
- \`GET /v1/versions\` lists who changed what: the last hundred changes of all tenants, or with \`?tenant=\` the last twenty of one, however often others change.
- \`POST /v1/rollback\` restores an earlier version, as a new one. Its hosts still belong to whoever named them first. With the ETag of its plan as \`If-Match\` it is refused where somebody else was first. It restores no API key that was revoked since: of the keys of the earlier version, a tenant gets only those that it has now, or had when it was removed.
- \`gatehouse export\` writes the tenants made here in the form of a configuration file, and \`gatehouse import FILE --into-store\` puts those of a file here ([cli.md](cli.md)), for operators who keep their configuration in a repository. An export without a change imports as no change.
- \`behindFile\` of plan and apply (\`--behind-file\`) stores also a tenant that the configuration file has. It takes effect once the file no longer has the tenant, and no session ends. A tenant that is added to the file is managed by the file from then on.
- \`POST …/upstreams/{upstream}/reconnect\` reconnects an upstream, whoever manages it, and restarts its processes: after the calls that run, or at once.

### What a tenant-admin cannot do

- \`reserved\` of a tenant names parts that only a platform-admin changes: \`reserved: [policy, audit, limits/everybody]\`. Scopes and names of keys, issuers and tags that reserved rules compare, a tenant-admin cannot assign, except the scopes that \`grantableScopes\` lists ([policy.md](policy.md#rules-that-a-tenant-admin-cannot-get-around)).
- A tenant-admin changes only the tenants of its key, and names hosts of upstreams, issuers and the provider of a login front only from \`admin.allowedHosts\`; no programs, and no references. A part in which a platform-admin used references it must leave as it is.
- A host below \`*.\` of that list is reached at public addresses and port 443 only, and at ports of \`egress.ports\`; an upstream at another port is refused, unless \`egress.allow\` opens ranges. The same holds for a host that was removed from the list. A host that is listed by its own name is reached at any address ([connections.md](connections.md#where-the-gateway-goes-for-it)).
- URLs in the metadata of such an issuer (\`jwks_uri\`, the token endpoint) must lead to its own origin or to those hosts, too. Where they do not, a platform-admin gives \`jwksUri\`.
- Only upstreams of a platform-admin start programs, and only those of \`admin.allowedCommands\`, which may name their digests, too. When a program is removed from that list, upstreams that use it are left out at once.

### Kill switches

A kill switch (\`PUT /v1/tenants/{tenant}/kills/…\`) stops a tool, an upstream, a caller, a key or a whole tenant, also one of the file: at every process within a second, calls in flight included, until it is taken back.

- An upstream or key that does not exist is 404, since it would stop nothing. Where the process that answers cannot use the newest document of the tenant, what that document has counts as existing, too.
- *Other names.* A stopped upstream, or tool of one, is stopped also at any upstream of the tenant that leads to the same server from then on; a stopped key, as any key with the same secret. The same server is the same host, port and path, in whatever spelling, with whatever query: a changed query parameter does not evade the switch.
- *\`also\` and \`besides\`.* The answer of PUT (201, or 200 where it was stopped already) and \`GET …/kills\` list the names that are stopped with it as \`also\`. As \`besides\` they list the upstreams that led to the same server already when it was stopped. These go on as long as they are configured with the query that they had: look at them, and stop those that lead around the switch.
- *Not recognised.* Another host name or path that leads to the same server is not stopped: stop the tenant, or remove the host from \`admin.allowedHosts\`. A kill switch that an earlier version made stops its name only: put it again.
- *Taking back.* What a platform-admin has stopped, only a platform-admin takes back. Kill switches survive restarts and rollbacks, and \`explain\` reports them. They are removed with their tenant: made anew by PUT or apply it has none; restored by a rollback it has those that it had last.
- *Sessions.* All sessions of a stopped caller, key or tenant are refused at once, and end: of many, those opened before the newest 50 of the tenant end after the answer. If the process dies meanwhile, the same \`PUT\` again ends the others. A task that its server runs by itself goes on there.

### Streams, and calls for a try

- With \`Accept: text/event-stream\` a client gets calls as they end (\`GET /v1/calls\`, \`GET /v1/tenants/{tenant}/calls\`) and audit records as they are made (\`GET /v1/tenants/{tenant}/audit\`), from every process on the store. Nothing is kept for a reader that is not connected. A stream that is not read, or whose key is removed, ends with the reason.
  \`curl -N -H "Accept: text/event-stream" …\` shows one.
- \`POST …/endpoints/{endpoint}/try\` calls a tool with the rights of the credential in its body, at the gateway's own listener: an administrator gains no rights by it. Where a server asks for input (\`resultType: input_required\`), send the answers as \`inputResponses\`, with the \`requestState\` that came, to the same route. The audit log records both who tried it and the call.

### Documents that a process cannot use

Where the document of a tenant cannot be used at one process (for example, because a variable is not set there):

- The tenant stays there as it was. The log and \`problems\` of \`GET /v1/tenants/{tenant}\` say why. The process stays ready, and other tenants are not affected.
- A process that has started with such a document does not have the tenant at all. \`/health/ready\` names it in \`tenants\`, with 200, and \`GET /v1/problems\` does, too. Requests for any tenant that does not exist there get 503 and not 404, so that hosts do not take their sessions for ended.
- A process is not ready before it has read the documents for the first time.

### Refusals

A refusal is a problem (RFC 9457, \`application/problem+json\`). \`detail\` says what is wrong, \`instance\` where, and \`remedy\` what to do; \`errors\` lists each fault of a body or query. For a body with a member twice \`detail\` names that member.
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
