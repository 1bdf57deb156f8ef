// The Inspector's command line against three real servers through one endpoint, by an API key and by a JWT of a real
// issuer.

import t from 'tap'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { issuer } from '../kit/issuer.ts'
import { inspect } from '../e2e/kit/inspector.ts'
import { realUpstreams } from '../e2e/kit/real-servers.ts'

const [upstreams, provider] = await Promise.all([realUpstreams(t), issuer(t)])
const house = await startHouse(t, {
  upstreams,
  limits: { coldStartMs: 30_000, pageSize: 10 },
  auth: { keys: [{ name: 'host', key }], issuers: [{ issuer: provider.url }] }
})
const home = t.testdir()
const bearers = { 'an API key': key, 'a JWT': await provider.token({ resource: house.url() }) }

for (const [by, bearer] of Object.entries(bearers)) {
  const run = (method: string, ...args: string[]) =>
    inspect(
      [
        house.url(),
        '--transport',
        'http',
        '--header',
        `Authorization: Bearer ${bearer}`,
        '--method',
        method,
        '--format',
        'json',
        ...args
      ],
      home
    )

  t.test(`tools/list with ${by} shows the tools of all three, from all pages`, async (t) => {
    const { code, result } = await run('tools/list')
    t.equal(code, 0)
    const names = (result['tools'] as Array<{ name: string }>).map(({ name }) => name)
    // It declares roots, and the server has a tool for that.
    for (const name of [
      'everything__echo',
      'memory__read_graph',
      'remote__get-sum',
      'everything__get-roots-list',
      'remote__get-roots-list'
    ])
      t.ok(names.includes(name), name)
    t.equal(names.length, 37)
  })

  t.test(`tools/call with ${by} answers`, async (t) => {
    const { code, result } = await run('tools/call', '--tool-name', 'remote__get-sum', '--tool-arg', 'a=40', 'b=2')
    t.equal(code, 0)
    t.match(result, { content: [{ type: 'text', text: /42/ }] })
  })
}

const run = (method: string, ...args: string[]) =>
  inspect(
    [
      house.url(),
      '--transport',
      'http',
      '--header',
      `Authorization: Bearer ${key}`,
      '--method',
      method,
      '--format',
      'json',
      ...args
    ],
    home
  )

t.test('prompts/get, resources/read and logging/setLevel answer too', async (t) => {
  const [prompt, resource, level] = await Promise.all([
    run('prompts/get', '--prompt-name', 'everything__args-prompt', '--prompt-args', 'city=Bern'),
    run('resources/read', '--uri', 'gatehouse://remote/demo://resource/dynamic/text/3'),
    run('logging/setLevel', '--log-level', 'warning')
  ])
  t.match(prompt.result, { messages: [{ content: { text: "What's weather in Bern?" } }] })
  t.match(resource.result, { contents: [{ text: /^Resource 3: / }] })
  t.equal(level.code, 0)
})

t.test('a wrong key is refused, and it says so', async (t) => {
  const { code, stdout, stderr } = await inspect(
    [
      house.url(),
      '--transport',
      'http',
      '--header',
      `Authorization: Bearer ${key}x`,
      '--stored-auth-only',
      '--method',
      'tools/list'
    ],
    home
  )
  t.not(code, 0)
  t.match(stdout + stderr, /auth|401/i)
})
