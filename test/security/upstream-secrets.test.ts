// Attack: a caller has a tool print what its server was configured with. Servers dump their environment and echo
// headers, on purpose or in an error. Neither reaches a client, by whichever way the server says it.

import { join } from 'node:path'
import t from 'tap'
import { answeringClient } from '../kit/answering-client.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { stdioServer } from '../abuse/kit.ts'

const token = 'sekrit-4f1c9a7e55/"+x'
const site = 'https://tickets.example.com/api/v2'
const headers = { Authorization: `Bearer ${token}`, 'X-Site': site, 'X-Stage': 'production' }
const named = `tool_of_4f1c9a7e55`
const tools = [
  ...['echo', 'rpcerror', 'steps', 'log'].map((name) => ({ name, inputSchema: { type: 'object' } })),
  { name: named, description: `uses ${token}`, inputSchema: { type: 'object' } }
]

async function acme(t: Test) {
  const [legacy, modern, other] = await Promise.all([
    startUpstream({ tools, answers: 'sse' }),
    startModern({ tools, instructions: `say ${token}` }),
    startUpstream({ tools })
  ])
  for (const { close } of [legacy, modern, other]) t.teardown(close)
  const child = { API_TOKEN: token, SITE: site, NODE_ENV: 'production', MORE: `${token}; ${token}`, PIN: '4711' }
  const served = await gateway(t, {
    upstreams: {
      legacy: { url: legacy.url, headers: { ...headers, 'X-Word': named } },
      modern: { url: modern.url, headers },
      other: { url: other.url, headers: { Authorization: 'Bearer something-else-1234' } },
      child: { ...stdioServer(), env: child }
    }
  })
  return { served, legacy }
}
type Test = Parameters<typeof gateway>[0] & { equal: typeof t.equal }

const leak = /sekrit-4f1c9a7e55/

t.test('results, errors, log messages and server requests show no secret header', async (t) => {
  const { served, legacy } = await acme(t)
  const ada = await answeringClient(served.url(), key, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
  const call = async (name: string, args: unknown) => await ada.request('tools/call', { name, arguments: args })

  const echoed = JSON.stringify(await call('legacy__echo', { said: headers, more: [`x${token}y`], plain: 'fine' }))
  t.notMatch(echoed, leak)
  t.match(echoed, '"x***y"')
  for (const kept of [site, '"production"', '"fine"']) t.match(echoed, kept, 'what is no secret is left as it is')

  const refused = await call('legacy__rpcerror', { message: `no ${token}`, data: { got: `Bearer ${token}` } })
  t.match(refused, { error: { code: -32050, message: 'no ***', data: { got: '***' } } })

  const asking = await ada.start('tools/call', {
    name: 'legacy__steps',
    arguments: {
      steps: [
        { log: `started with ${token}` },
        { ask: [{ method: 'elicitation/create', params: { message: `Is ${token} right?`, requestedSchema: {} } }] }
      ]
    }
  })
  const [question = {}] = await asking.serverRequests()
  t.match(question, { params: { message: /Is \*\*\* right\?/ } })
  await ada.answer(question, { action: 'decline' })
  t.ok(await asking.final())
  const heard = JSON.stringify(asking.messages())
  t.match(heard, 'started with ***')
  t.notMatch(heard, leak)

  legacy.override(isCall('echo'), (response) => {
    const error = { jsonrpc: '2.0', error: { code: -32000, message: `bad header ${token}` } }
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error))
  })
  const broken = JSON.stringify(await call('legacy__echo', {}))
  t.match(broken, 'bad header ***')
  // Of a long message the first 200 characters are passed on: the end may be a part of the secret.
  legacy.override(isCall('echo'), (response) => {
    const error = { jsonrpc: '2.0', error: { code: -32000, message: `${'.'.repeat(183)} ${token}` } }
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error))
  })
  t.match(JSON.stringify(await call('legacy__echo', {})), '. ***')
  t.notMatch(JSON.stringify(served.log), leak, 'nor does the log')
})

t.test('a list shows no secret, and its names stay callable', async (t) => {
  const { served } = await acme(t)
  const client = await legacyClient(served.url(), key)
  const { json } = await client.request('tools/list')
  const listed = (json.result.tools as Array<{ name: string; description?: string }>).filter(({ name }) =>
    name.endsWith(named)
  )
  t.match(listed, [
    { name: `legacy__${named}`, description: 'uses ***' },
    { name: `modern__${named}`, description: 'uses ***' },
    { name: `other__${named}`, description: `uses ${token}` }
  ])
})

t.test('a server of 2026-07-28 shows none either', async (t) => {
  const { served } = await acme(t)
  const ask = async (name: string, args: object) =>
    await modernRequest(served.url(), 'tools/call', { name, arguments: args }, { token: key })
  const { text } = await ask('modern__echo', { said: headers })
  t.notMatch(text, leak)
  t.match(text, site)
  t.match((await ask('modern__rpcerror', { code: -32602, message: `no ${token}` })).json, {
    error: { message: 'no ***' }
  })
  t.notMatch((await modernRequest(served.url(), 'server/discover', {}, { token: key })).text, leak)
})

t.test('a child that prints its environment shows no secret of it', async (t) => {
  const { served } = await acme(t)
  const client = await legacyClient(served.url(), key)
  const { json, text } = await client.request('tools/call', { name: 'child__env', arguments: {} })
  t.notMatch(text, leak)
  const environment = JSON.parse(json.result.content[0].text) as Record<string, string>
  t.match(environment, { API_TOKEN: '***', MORE: '***', SITE: site, NODE_ENV: 'production', PIN: '4711' })
})

t.test('nor a password of a proxy, nor what it inherits; where it is at home stays', async (t) => {
  const proxy = 'http://svc:Pr0xyPass!@proxy.example:3128'
  const alone = 'accessalone'
  const own = `gatehouse_${'aB3-'.repeat(10)}xyz0123abcd`
  const served = await gateway(t, {
    upstreams: { child: { ...stdioServer(), inheritEnv: ['API_TOKEN', 'REGION'] } },
    env: {
      HTTPS_PROXY: proxy,
      http_proxy: 'svc:Winter2024@proxy.example:3128',
      ALL_PROXY: `http://${alone}@proxy.example:3128`,
      NO_PROXY: '10.0.0.0/8,localhost',
      SSL_CERT_FILE: '/nix/store/9s1b0dq3k7a1x8/ca.pem',
      USER: 'svc-4f1c9a7e55b2',
      API_TOKEN: token,
      REGION: 'eu-central-1'
    }
  })
  const client = await legacyClient(served.url(), key)
  const { json, text } = await client.request('tools/call', { name: 'child__env', arguments: {} })
  t.notMatch(text, /sekrit|Pr0xy|Winter|accessalone/)
  const shown = JSON.parse(json.result.content[0].text) as Record<string, string>
  t.match(shown, {
    HTTPS_PROXY: '***',
    http_proxy: '***',
    ALL_PROXY: '***',
    API_TOKEN: '***',
    NO_PROXY: '10.0.0.0/8,localhost',
    SSL_CERT_FILE: '/nix/store/9s1b0dq3k7a1x8/ca.pem',
    USER: 'svc-4f1c9a7e55b2',
    REGION: 'eu-central-1',
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? ''
  })
  const basic = Buffer.from('svc:Pr0xyPass!').toString('base64')
  const said = `no ${proxy}, svc:Winter2024, ${alone}, Basic-${basic}, ${token}, ${own}, of svc-4f1c9a7e55b2 in eu-central-1\n`
  await client.request('tools/call', { name: 'child__stderr', arguments: { text: said } })
  const line = await until('standard error is logged', () => served.log.find(({ stderr }) => stderr !== undefined))
  t.equal(line['stderr'], 'no ***, ***, ***, Basic-***, ***, ***, of svc-4f1c9a7e55b2 in eu-central-1')
  const { text: echoed } = await client.request('tools/call', { name: 'child__echo', arguments: { text: said } })
  t.notMatch(echoed, /sekrit|Pr0xy|Winter|c3ZjOlBy|accessalone/)
})

t.test('what came from a file is masked whatever it looks like, in results and in the log; paths stay', async (t) => {
  const word = 'correct horse'
  const file = join(t.testdir({ word: `${word}\n` }), 'word')
  const served = await gateway(t, {
    upstreams: { child: { ...stdioServer(), env: { GREETING: '${file:' + file + '}', ROOT: '/srv/files/of-acme' } } }
  })
  const client = await legacyClient(served.url(), key)
  const { json } = await client.request('tools/call', { name: 'child__env', arguments: {} })
  t.match(JSON.parse(json.result.content[0].text), { GREETING: '***', ROOT: '/srv/files/of-acme' })
  const text = `no ${word} in /srv/files/of-acme\n`
  await client.request('tools/call', { name: 'child__stderr', arguments: { text } })
  const line = await until('standard error is logged', () => served.log.find(({ stderr }) => stderr !== undefined))
  t.equal(line['stderr'], 'no *** in /srv/files/of-acme')
  t.notMatch(JSON.stringify(served.log), word)
})

t.test("an upstream may say what is another one's secret, which it cannot know from the gateway", async (t) => {
  const { served } = await acme(t)
  const client = await legacyClient(served.url(), key)
  const { json } = await client.request('tools/call', { name: 'other__echo', arguments: { said: token } })
  t.same(JSON.parse(json.result.content[0].text), { said: token })
})

t.test('the names of members show none either; those that a client sends back stay', async (t) => {
  const { served } = await acme(t)
  const said = { [`x${token}`]: { [token]: 'fine' }, fine: [{ [token]: 1 }] }
  const ada = await answeringClient(served.url(), key, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
  for (const [name, args] of [
    ['legacy__echo', said],
    ['legacy__rpcerror', { message: 'no', data: said }]
  ] as const) {
    const answer = JSON.stringify(await ada.request('tools/call', { name, arguments: args }))
    t.notMatch(answer, leak)
    t.match(answer, '"x***":{"***":"fine"},"fine":[{"***":1}]')
  }
  const modern = await modernRequest(
    served.url(),
    'tools/call',
    { name: 'modern__echo', arguments: said },
    { token: key }
  )
  t.notMatch(modern.text, leak)
  t.match(modern.text, '"x***":{"***":"fine"},"fine":[{"***":1}]')
  const properties = { [token]: { type: 'string' } }
  const asked = {
    method: 'elicitation/create',
    params: { message: 'x', requestedSchema: { type: 'object', properties } }
  }
  const call = await ada.start('tools/call', { name: 'legacy__steps', arguments: { steps: [{ ask: [asked] }] } })
  const [question = {}] = await call.serverRequests()
  t.match(question, asked, 'a field of a form')
  await ada.answer(question, { action: 'decline' })
  t.ok(await call.final())
})

t.test(
  'of names that are equal once they are masked none takes the place of another, however long all is',
  async (t) => {
    const { served } = await acme(t)
    const client = await legacyClient(served.url(), key)
    const json = JSON.stringify(token).slice(1, -1)
    const said = { [token]: 1, '***': 2, [json]: 3, '*** 2': 4, [`Bearer ${token}`]: 5, plain: 6 }
    for (const fill of ['', 'x'.repeat(200_000)]) {
      const { json: answer } = await client.request('tools/call', {
        name: 'legacy__echo',
        arguments: { said, fill, more: { [`${token}${fill.slice(0, 900)}`]: [fill] } }
      })
      const { said: shown, more, fill: whole } = answer.result.structuredContent.arguments
      t.same(shown, { '*** 3': 1, '***': 2, '*** 4': 3, '*** 2': 4, '*** 5': 5, plain: 6 })
      t.same(more, { [`***${fill.slice(0, 900)}`]: [fill] })
      t.equal(whole, fill)
    }
  }
)
