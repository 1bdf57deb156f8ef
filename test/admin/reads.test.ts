// What the routes tell: tenants, endpoints, upstreams with their live state, catalogs and explanations; in the form that
// the table says, and without a secret.

import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway, adminKeys, type AdminCall, type AdminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const canary = 'CANARYq7Xw2Zr9Lk4Vb8'
const policy = {
  default: 'deny',
  rules: [
    { name: 'readers', effect: 'allow', who: { groups: ['readers'] }, what: { names: ['echo'] } },
    { name: 'all', effect: 'allow', who: { groups: ['admins'] } }
  ]
}

async function start(t: { teardown(run: () => unknown): unknown }) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, {
    upstreams: {
      up: { type: 'http', url: `${upstream.url}?key=${canary}`, headers: { 'X-Api-Key': canary } },
      child: {
        command: process.execPath,
        args: ['-e', `console.error('cannot open ' + process.argv[1] + ' of the tests'); process.exit(3)`, canary],
        env: { SECRET: canary }
      }
    },
    endpoints: { default: { upstreams: ['up', 'child'] }, plain: { upstreams: ['up'], prefix: '', policy } },
    auth: { keys: [{ name: 'test', key, scopes: ['mcp'] }] },
    limits: { coldStartMs: 100 }
  })
  return { ...made, upstream }
}

/** Answers have the form of the table, which is closed: nothing is told that it does not name. */
async function asTold({ call }: Pick<AdminGateway, 'call'>, method: string, path: string, options?: AdminCall) {
  const route = adminRoutes.find((each) => {
    const pattern = new RegExp(`^${each.path.replace(/\{\w+\}/g, '[^/]+')}$`)
    return each.method === method && pattern.test(path.split('?')[0] ?? '')
  })
  const answer = await call(method, path, options)
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
  const validate = new Ajv2020({ strict: false, logger: false }).compile(
    JSON.parse(JSON.stringify(route?.response)) as object
  )
  if (!validate(answer.json)) throw new Error(`${method} ${path}: ${JSON.stringify(validate.errors)} ${answer.text}`)
  if (answer.text.includes(canary)) throw new Error(`${method} ${path} tells a secret: ${answer.text}`)
  return answer.json as Record<string, unknown>
}

t.test('tenants, endpoints and limits are told as they are in force', async (t) => {
  const made = await start(t)
  const tenants = await asTold(made, 'GET', '/v1/tenants')
  t.match(tenants, { items: [{ id: 'acme', upstreams: 2, endpoints: 2 }, { id: 'globex' }], nextCursor: null })
  t.match(await asTold(made, 'GET', '/v1/tenants/acme'), { id: 'acme', keys: [{ name: 'test', scopes: ['mcp'] }] })
  t.match(await asTold(made, 'GET', '/v1/tenants/acme/endpoints'), {
    items: [
      { name: 'default', path: '/t/acme/mcp', policyRules: null },
      { name: 'plain', policyRules: 2 }
    ]
  })
  t.match(await asTold(made, 'GET', '/v1/limits'), { coldStartMs: 100, readyDelayMs: 0 })
})

t.test('a key sees the tenants that it is for, and another one looks like one that there is not', async (t) => {
  const made = await start(t)
  const own = await asTold(made, 'GET', '/v1/tenants', { key: adminKeys.globex })
  t.match(own, { items: [{ id: 'globex' }] })
  t.equal((own['items'] as unknown[]).length, 1)
  for (const rest of ['', '/endpoints', '/upstreams', '/upstreams/up', '/sessions']) {
    const told = async (tenant: string) => {
      const { status, text } = await made.call('GET', `/v1/tenants/${tenant}${rest}`, { key: adminKeys.globex })
      return { status, text: text.replaceAll(tenant, 'TENANT') }
    }
    t.equal((await told('acme')).status, 404, rest)
    t.same(await told('acme'), await told('nobody'), rest)
  }
  const foreign = await made.call('GET', '/v1/tenants/globex/upstreams/up', { key: adminKeys.globex })
  t.match(foreign.json, { status: 404, detail: /upstream/ })
})

t.test('rules are told in their order, each with what it covers of the tools that are known', async (t) => {
  const made = await start(t)
  const path = '/v1/tenants/acme/endpoints/plain/rules'
  t.match(await asTold(made, 'GET', path), { unknown: ['up'], tools: 0, items: [{ tools: { count: 0 } }, {}] })
  const client = await legacyClient(made.url('plain'), key)
  await client.request('tools/list')
  const told = await until('its lists are known', async () => {
    const now = await asTold(made, 'GET', path)
    return (now['unknown'] as unknown[]).length === 0 ? now : undefined
  })
  const readers = { name: 'readers', of: 'endpoint', place: 1, effect: 'allow', tools: { count: 1, names: ['echo'] } }
  t.match(told, { defaults: { tenant: null, endpoint: 'deny' }, nextCursor: null })
  t.match(told['items'], [readers, { name: 'all', place: 2, tools: { count: told['tools'] } }])
  t.ok(Number(told['tools']) > 1)
  const first = await asTold(made, 'GET', `${path}?limit=1`)
  const second = await asTold(made, 'GET', `${path}?limit=1&cursor=${String(first['nextCursor'])}`)
  t.match([first, second], [{ items: [{ name: 'readers' }] }, { items: [{ name: 'all' }], nextCursor: null }])
  t.equal((await made.call('GET', path, { key: adminKeys.viewer })).status, 403)
  t.same((await asTold(made, 'GET', path.replace('plain', 'default')))['items'], [], 'neither has a policy there')
})

t.test('lists come page by page, each entry once', async (t) => {
  const made = await start(t)
  const first = await asTold(made, 'GET', '/v1/tenants?limit=1')
  t.match(first, { items: [{ id: 'acme' }], nextCursor: /.+/ })
  const second = await asTold(made, 'GET', `/v1/tenants?limit=1&cursor=${String(first['nextCursor'])}`)
  t.match(second, { items: [{ id: 'globex' }], nextCursor: null })
})

t.test('an upstream is told with its connections, its lists, and why it is away', async (t) => {
  const made = await start(t)
  const one = (name: string, options?: AdminCall) => asTold(made, 'GET', `/v1/tenants/acme/upstreams/${name}`, options)
  t.match(await one('up'), { state: 'idle', connections: 0, listing: null, secrets: ['X-Api-Key'], awaySince: null })
  const client = await legacyClient(made.url(), key)
  await client.request('tools/call', { name: 'up__echo', arguments: {} })
  const up = await until('its lists are known', async () => {
    const told = await one('up')
    return told['listing'] === null ? undefined : told
  })
  t.match(up, {
    state: 'connected',
    type: 'http',
    target: new URL(made.upstream.url).origin,
    calls: 0,
    lastError: null
  })
  t.ok(Number(up['connections']) > 0)
  t.match(up['listing'], { tools: Number, prompts: Number, resources: Number, templates: Number })
  const child = await until('the process has failed', async () => {
    const told = await one('child')
    return told['lastStderr'] !== null && told['state'] === 'away' ? told : undefined
  })
  t.match(child, {
    type: 'stdio',
    target: process.execPath,
    awaySince: /^\d{4}-.*Z$/,
    nextTryAt: /^\d{4}-.*Z$/,
    lastError: /child/,
    lastStderr: /^cannot open .* of the tests$/
  })
  // The test command adds a folder for compiled code.
  t.ok((child['secrets'] as string[]).includes('SECRET'))
  for (const key of [adminKeys.viewer, adminKeys.auditor])
    t.match(await one('child', { key }), { lastError: null, lastStderr: null, state: 'away' }, 'nothing that it said')
  const said = await asTold(made, 'GET', '/v1/tenants/acme/upstreams/child/stderr', { key: adminKeys.acme })
  const lines = said['items'] as Array<{ at: string; text: string }>
  t.match(
    lines[0],
    { at: /^\d{4}-.*Z$/, text: /^cannot open \*\*\* of the tests$/, leftOut: 0 },
    'its secret is masked'
  )
  t.same((await asTold(made, 'GET', '/v1/tenants/acme/upstreams/up/stderr'))['items'], [], 'a URL has none')
  t.equal((await made.call('GET', '/v1/tenants/acme/upstreams/none/stderr')).status, 404)
  const list = await asTold(made, 'GET', '/v1/tenants/acme/upstreams')
  t.same(
    (list['items'] as Array<{ name: string }>).map(({ name }) => name),
    ['child', 'up']
  )
})

t.test(
  'the catalog of a caller has what the policy lets the caller see, and so does a list of the caller',
  async (t) => {
    const made = await start(t)
    const seenBy = async (caller: object, kind = 'tool'): Promise<string[]> => {
      const told = await until('the lists are known', async () => {
        const body = { caller, kind, limit: 200 }
        const answer = await asTold(made, 'POST', '/v1/tenants/acme/endpoints/plain/catalog', { body })
        return (answer['unknown'] as unknown[]).length === 0 ? answer : undefined
      })
      return (told['items'] as Array<{ name: string }>).map(({ name }) => name)
    }
    t.same(await seenBy({ groups: ['readers'] }), ['echo'])
    t.same(await seenBy({ key: 'test' }), [])
    const all = await seenBy({ groups: ['admins'] })
    t.ok(all.length > 1)
    const default_ = await made.call('POST', '/v1/tenants/acme/endpoints/default/catalog', {
      body: { caller: { key: 'test' }, limit: 200 }
    })
    const client = await legacyClient(made.url(), key)
    const { json } = await client.request('tools/list')
    const listed = (json.result.tools as Array<{ name: string }>).map(({ name }) => name).sort()
    t.same(
      (default_.json as { items: Array<{ name: string }> }).items.map(({ name }) => name),
      listed
    )
    t.match(default_.json, { unknown: ['child'] })
  }
)

t.test('explain says what the evaluator says, and refuses what cannot be asked', async (t) => {
  const made = await start(t)
  const path = '/v1/tenants/acme/endpoints/plain/explain'
  const ask = (body: object) => asTold(made, 'POST', path, { body })
  t.match(await ask({ caller: { groups: ['readers'] }, name: 'up/echo' }), { outcome: 'allowed' })
  t.match(await ask({ caller: { groups: ['readers'] }, name: 'up/other' }), {
    outcome: 'denied',
    rules: [
      { name: 'readers', applies: false },
      { name: 'all', applies: false }
    ]
  })
  const bad = [{ name: 'nobody/echo' }, { name: 'up/echo', caller: { key: 'none' } }, { name: 'up/echo', at: 'now' }]
  for (const body of [...bad, {}, { name: 'up/echo', arguments: [] }])
    t.equal((await made.call('POST', path, { body })).status, 400, JSON.stringify(body))
  t.equal(
    (await made.call('POST', '/v1/tenants/acme/endpoints/none/explain', { body: { name: 'up/echo' } })).status,
    404
  )
})

t.test('what is stopped stands among the rules, in the form of the table', async (t) => {
  const made = await start(t)
  t.equal((await made.call('PUT', '/v1/tenants/acme/kills/tools/up/echo?force=true')).status, 201)
  const stopped = { name: 'kill switch', effect: 'deny', what: { upstreams: ['up'], names: ['echo'] } }
  t.match(await asTold(made, 'GET', '/v1/tenants/acme/policy'), { default: 'allow', rules: [stopped] })
  t.match(await asTold(made, 'GET', '/v1/tenants/acme/endpoints/default/rules'), { items: [stopped] })
})

interface Operation {
  readonly parameters: ReadonlyArray<{ readonly in: string; readonly name: string }>
  readonly requestBody?: { readonly content: object }
  readonly responses: Record<string, { headers?: object; content?: Record<string, { schema: object }> }>
}

t.test('the OpenAPI document names every route, and each of its schemas can be used', async (t) => {
  const made = await start(t)
  const document = (await made.call('GET', '/openapi.json')).json as {
    readonly openapi: string
    readonly paths: Record<string, Record<string, Operation>>
  }
  t.equal(document.openapi, '3.1.0')
  t.same(
    Object.entries(document.paths)
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
      .sort(),
    adminRoutes.map(({ method, path }) => `${method} ${path}`).sort()
  )
  const headersOf = ({ parameters }: Operation): string[] =>
    parameters.flatMap((each) => (each.in === 'header' ? each.name : []))
  const tenant = document.paths['/v1/tenants/{tenant}']
  const key = document.paths['/v1/tenants/{tenant}/keys/{key}']
  t.same(tenant?.['put'] && headersOf(tenant['put']), ['If-Match', 'If-None-Match'])
  t.same(tenant?.['patch'] && Object.keys(tenant['patch'].requestBody?.content ?? {}), [
    'application/json',
    'application/merge-patch+json'
  ])
  t.match(tenant?.['get']?.responses['200'], { headers: { ETag: {} } })
  t.same(key?.['delete'] && headersOf(key['delete']), [], 'a key has no versions')
  for (const methods of Object.values(document.paths))
    for (const { responses } of Object.values(methods)) {
      const schema = responses['200']?.content?.['application/json']?.schema
      if (schema !== undefined) t.ok(new Ajv2020({ strict: false, logger: false }).compile(schema))
    }
  t.notOk(JSON.stringify(document).includes(canary))
})
