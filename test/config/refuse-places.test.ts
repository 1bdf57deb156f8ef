import t from 'tap'
import { base, problemsOf, refusals } from './kit.ts'

const acme = ['tenants', 'acme']
const files = [...acme, 'upstreams', 'files']
const tickets = [...acme, 'upstreams', 'tickets']
const endpoints = [...acme, 'endpoints']
const abroad = { ...base(), listen: { host: '0.0.0.0' } }

refusals(t, [
  {
    name: 'listening abroad without a public URL is refused',
    steps: ['publicUrl'],
    bad: undefined,
    good: 'https://mcp.example.com',
    start: abroad,
    message: /listens beyond this machine/
  },
  {
    name: 'a public URL with a path is refused',
    steps: ['publicUrl'],
    bad: 'https://mcp.example.com/mcp',
    good: 'https://mcp.example.com/',
    message: /must be an origin/
  },
  {
    name: 'a public URL over plain http is refused',
    steps: ['publicUrl'],
    bad: 'http://mcp.example.com',
    good: 'http://localhost:8080',
    message: /plain http/
  },
  {
    name: 'a bind address with a scheme is refused',
    steps: ['listen', 'host'],
    bad: 'http://127.0.0.1',
    good: '::1',
    start: { ...base(), publicUrl: 'https://mcp.example.com' },
    message: /not an address/
  },
  {
    name: 'a port beyond 65535 is refused',
    steps: ['listen', 'port'],
    bad: 65_536,
    good: 0,
    message: /from 0 to 65535/
  },
  { name: 'a port in quotes is refused', steps: ['listen', 'port'], bad: '8080', good: 8080, message: /whole number/ },
  {
    name: 'a host with a scheme is refused',
    steps: ['hosts', 0],
    bad: 'https://a.example',
    good: '[::1]:8080',
    message: /not a host name/
  },
  {
    name: 'a store of an unknown kind is refused',
    steps: ['store'],
    bad: 'postgres://db',
    good: 'rediss://user:pw@cache.example:6380/1',
    message: /no store/
  },
  {
    name: 'a Redis path that is no number is refused',
    steps: ['store'],
    bad: 'redis://cache.example/gatehouse',
    good: 'redis://cache.example',
    message: /number of a database/
  },
  {
    name: 'Sentinels without the name of their primary are refused',
    steps: ['store'],
    bad: 'redis+sentinel://a.example,b.example:26380',
    good: 'rediss+sentinel://user:p%40w@a.example,b.example:26380/main/1?sentinelPassword=x',
    message: /no address of Redis/
  },
  {
    name: 'a cluster has no numbered databases, and no settings beside the address',
    steps: ['store'],
    bad: 'redis+cluster://a.example,b.example:7001/1',
    good: 'redis+cluster://:pw@a.example,b.example:7001,[::1]',
    message: /no address of Redis/
  },
  {
    name: 'several servers without Sentinels or a cluster are refused',
    steps: ['store'],
    bad: 'redis://a.example,b.example',
    good: 'redis://a.example',
    message: /no address of Redis/
  },
  {
    name: 'an unknown log level is refused',
    steps: ['logLevel'],
    bad: 'verbose',
    good: 'debug',
    message: /must be one of/
  },
  {
    name: 'an upstream URL of another scheme is refused',
    steps: [...tickets, 'url'],
    bad: 'ftp://tickets.example.com',
    good: 'http://tickets.internal/mcp',
    message: /must begin with https/
  },
  {
    name: 'an upstream URL with a password is refused',
    steps: [...tickets, 'url'],
    bad: 'https://a:b@tickets.example.com',
    good: 'https://tickets.example.com/?v=1',
    message: /user name or password/
  },
  {
    name: 'an upstream URL with a fragment is refused',
    steps: [...tickets, 'url'],
    bad: 'https://tickets.example.com/#',
    good: 'https://tickets.example.com/',
    message: /fragment/
  },
  {
    name: 'text that is no URL is refused',
    steps: [...tickets, 'url'],
    bad: 'tickets.example.com/mcp',
    good: 'https://tickets.example.com/mcp',
    message: /not an absolute URL/
  },
  {
    name: 'a backslash in a URL is refused',
    steps: [...tickets, 'url'],
    bad: 'https://good.example\\@evil.example/',
    good: 'https://good.example/',
    message: /not an absolute URL/
  },
  {
    name: 'an unknown transport is refused',
    steps: [...tickets, 'type'],
    bad: 'websocket',
    good: 'sse',
    message: /one of http, streamable-http, streamableHttp, sse/
  },
  {
    name: 'the header Host is refused',
    steps: [...tickets, 'headers'],
    bad: { Host: 'a' },
    good: { 'X-Host': 'a' },
    path: 'tenants.acme.upstreams.tickets.headers.Host',
    message: /writes itself/
  },
  {
    name: 'the header Mcp-Session-Id is refused in any case',
    steps: [...tickets, 'headers'],
    bad: { 'mcp-SESSION-id': 'a' },
    good: { Authorization: 'Bearer x' },
    path: 'tenants.acme.upstreams.tickets.headers.mcp-SESSION-id',
    message: /writes itself/
  },
  {
    name: 'a header value with a line break is refused',
    steps: [...tickets, 'headers'],
    bad: { 'X-A': 'a\r\nHost: b' },
    good: { 'X-A': 'a b' },
    path: 'tenants.acme.upstreams.tickets.headers.X-A',
    message: /line break/
  },
  {
    name: 'a header name with a space is refused',
    steps: [...tickets, 'headers'],
    bad: { 'X A': 'a' },
    good: { 'X-A': 'a' },
    path: 'tenants.acme.upstreams.tickets.headers["X A"]',
    message: /not a possible header name/
  },
  {
    name: 'one header in two spellings is refused',
    steps: [...tickets, 'headers'],
    bad: { 'X-A': 'a', 'x-a': 'b' },
    good: { 'X-A': 'a', 'x-b': 'b' },
    path: 'tenants.acme.upstreams.tickets.headers.x-a',
    message: /same header as entry 1/
  },
  { name: 'an empty command is refused', steps: [...files, 'command'], bad: ' ', good: 'npx', message: /is empty/ },
  { name: 'a NUL in an argument is refused', steps: [...files, 'args', 0], bad: 'a\0b', good: 'a b', message: /NUL/ },
  {
    name: 'an argument that is a number is refused',
    steps: [...files, 'args', 0],
    bad: 8080,
    good: '8080',
    message: /must be a string/
  },
  {
    name: 'an impossible variable name is refused',
    steps: [...files, 'env'],
    bad: { 'A=B': 'c' },
    good: { A_B: 'c' },
    path: 'tenants.acme.upstreams.files.env["A=B"]',
    message: /name of an environment variable/
  },
  {
    name: 'an unknown isolation is refused',
    steps: [...files, 'isolation'],
    bad: 'user',
    good: 'principal',
    message: /one of session, principal, shared/
  },
  {
    name: 'an unknown era is refused',
    steps: [...files, 'era'],
    bad: 'stateless',
    good: 'modern',
    message: /one of auto, legacy, modern/
  },
  {
    name: 'a modern era over HTTP+SSE is refused',
    steps: tickets,
    bad: { url: 'https://a.example', type: 'sse', era: 'modern' },
    good: { url: 'https://a.example', type: 'sse', era: 'legacy' },
    path: 'tenants.acme.upstreams.tickets.era',
    message: /HTTP\+SSE has no such revision/
  },
  {
    name: 'a header Mcp-Param-* is refused',
    steps: [...tickets, 'headers'],
    bad: { 'Mcp-Param-Region': 'a' },
    good: { 'X-Param-Region': 'a' },
    path: 'tenants.acme.upstreams.tickets.headers.Mcp-Param-Region',
    message: /writes itself/
  },
  {
    name: 'an upstream with command and URL is refused',
    steps: [...files, 'url'],
    bad: 'https://a.example',
    good: undefined,
    message: /belongs to an HTTP upstream/
  },
  {
    name: 'an upstream with neither is refused',
    steps: files,
    bad: { env: {} },
    good: { command: 'a' },
    message: /neither command nor url/
  },
  {
    name: 'a timeout that looks like seconds is refused',
    steps: [...files, 'timeoutMs'],
    bad: 30,
    good: 30_000,
    message: /from 100 to/
  },
  {
    name: 'a dangling upstream name is refused',
    steps: [...endpoints, 'files', 'upstreams'],
    bad: ['fiels'],
    good: ['files'],
    path: 'tenants.acme.endpoints.files.upstreams[0]',
    message: /does not have/
  },
  {
    name: 'a dangling member is refused',
    steps: [...endpoints, 'files', 'upstreams'],
    bad: [{ upstream: 'x', prefix: 'y' }],
    good: [{ upstream: 'files', prefix: 'y' }],
    path: 'tenants.acme.endpoints.files.upstreams[0].upstream',
    message: /does not have/
  },
  {
    name: 'a member named twice is refused',
    steps: [...endpoints, 'files', 'upstreams'],
    bad: ['files', 'files'],
    good: ['files', 'tickets'],
    path: 'tenants.acme.endpoints.files.upstreams[1]',
    message: /same upstream as entry 1/
  },
  {
    name: 'a reserved endpoint name is refused',
    steps: endpoints,
    bad: { mcp: { upstreams: ['files'] } },
    good: { mcp2: { upstreams: ['files'] } },
    path: 'tenants.acme.endpoints.mcp',
    message: /reserved/
  },
  {
    name: 'an endpoint name with capitals is refused',
    steps: endpoints,
    bad: { Files: { upstreams: ['files'] } },
    good: { files: { upstreams: ['files'] } },
    path: 'tenants.acme.endpoints.Files',
    message: /lower-case/
  },
  {
    name: 'a pattern that begins with no upstream of the endpoint is refused',
    steps: [...endpoints, 'default', 'deny'],
    bad: { tools: ['flies/*'] },
    good: { tools: ['files/*', '*/delete'] },
    path: 'tenants.acme.endpoints.default.deny.tools[0]',
    message: /begins with no upstream of this endpoint/
  },
  {
    name: 'a change of a tool by the name that hosts see is refused',
    steps: [...endpoints, 'default', 'tools'],
    bad: { files__read: { title: 'a' } },
    good: { 'files/read': { title: 'a' } },
    path: 'tenants.acme.endpoints.default.tools.files__read',
    message: /must be UPSTREAM\/TOOL, .*such as files\/read/
  },
  {
    name: 'two tools of the same new name are refused',
    steps: [...endpoints, 'default', 'tools'],
    bad: { 'files/a': { rename: 'x' }, 'tickets/b': { rename: 'x' } },
    good: { 'files/a': { rename: 'x', fixed: { deep: [null, { any: 'JSON' }] } }, 'tickets/b': { rename: 'y' } },
    path: 'tenants.acme.endpoints.default.tools["tickets/b"].rename',
    message: /is the same name as that of entry 1/
  },
  {
    name: 'a separator outside tool names is refused',
    steps: [...endpoints, 'default', 'separator'],
    bad: '/',
    good: '.',
    message: /1 to 8/
  },
  {
    name: 'an upstream name with a slash is refused',
    steps: [...acme, 'upstreams', 'a/b'],
    bad: { command: 'a' },
    good: undefined,
    path: 'tenants.acme.upstreams["a/b"]',
    message: /letters, digits/
  },
  {
    name: 'a configuration without tenants is refused',
    steps: ['tenants'],
    bad: {},
    good: base()['tenants'],
    message: /is empty/
  }
])

t.test('a dangling name suggests the nearest upstream', async (t) => {
  const config = structuredClone(base()) as { tenants: { acme: { endpoints: object } } }
  config.tenants.acme.endpoints = { default: { upstreams: ['tikcets'] } }
  t.match(problemsOf(config), [{ suggestion: 'Did you mean "tickets"?' }])
})

t.test('an unknown key suggests the nearest one and is not also told as missing', async (t) => {
  const config = structuredClone(base()) as { tenants: { acme: { upstreams: object } } }
  config.tenants.acme.upstreams = { files: { comand: 'a' }, tickets: { url: 'https://a.example', hedaers: {} } }
  t.match(problemsOf(config), [
    {
      path: 'tenants.acme.upstreams.files.comand',
      message: 'is not a known key',
      suggestion: 'Did you mean "command"?'
    },
    { path: 'tenants.acme.upstreams.tickets.hedaers', suggestion: 'Did you mean "headers"?' }
  ])
})
