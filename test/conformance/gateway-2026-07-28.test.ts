// The official suite for 2026-07-28: against the reference server itself, and through a single-upstream endpoint with
// authentication on, where it has to find the same; and before a server that speaks 2025-11-25 only. The runs wait most
// of their time, and so they wait at once.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t from 'tap'
import { jsonHeaders, send } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { crossed, isOfReplicas } from './crossed.ts'
import { complaints, differences } from './differences.ts'
import { expected, figuresOf, isClean, type Figures, type Way } from './figures.ts'
import { tasksExtension } from './modern/tasks.ts'
import { startReference, stdioReference } from './reference.ts'
import { runSuite, type Run } from './suite.ts'

const requirements = '2026-07-28'
const reference = await startReference(t, 'http', requirements)

/** The ways to the upstream, and how each is configured. */
const ways: Partial<Record<Way, unknown>> = {
  'Streamable HTTP': { type: 'http', url: reference },
  // As the revision has it: a server that keeps nothing of anybody, so that the lists that a call changes are
  // everybody's.
  stdio: { ...stdioReference(t.testdir(), requirements), isolation: 'shared' }
}

async function through(configured: unknown): Promise<{ url: string; run: Run }> {
  const { url } = await startHouse(t, {
    upstreams: { reference: configured },
    endpoints: { default: { upstreams: ['reference'], prefix: '' } }
  })
  return { url: url(), run: await runSuite(url(), { requirements, token: key }) }
}

const [direct, ...runs] = await Promise.all([
  runSuite(reference, { requirements }),
  ...Object.values(ways).map(through)
])

/** What no server passes: the suite itself skips it, since its harness cannot hear it. */
const untold = ['tasks-status-notifications']
const unscored = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
  'json-schema-2020-12',
  'http-header-validation',
  'http-custom-header-server-validation'
]

t.test('the reference server scores 37 of 37 without a warning, and all that is not scored as well', async (t) => {
  t.same(figuresOf(direct), expected(requirements, requirements))
  t.same(
    complaints(direct).filter((complaint) => !untold.some((scenario) => complaint.startsWith(`${scenario}: `))),
    []
  )
  t.same(
    direct.unscored.map(({ scenario }) => scenario),
    unscored
  )
  t.equal(direct.exitCode, 0)
})

t.test(
  'over stdio, which the suite does not speak, the reference server has the same tools, asks, and knows tasks',
  async (t) => {
    const capabilities = { elicitation: { form: {} } }
    const over = {
      http: new StreamableHTTPClientTransport(new URL(reference)),
      stdio: new StdioClientTransport(stdioReference(t.testdir(), requirements))
    }
    const listed = []
    for (const transport of Object.values(over)) {
      const client = new Client(
        { name: 'direct', version: '1' },
        { capabilities, versionNegotiation: { mode: { pin: requirements } } }
      )
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
      await client.connect(transport)
      t.teardown(() => client.close())
      t.ok(client.getServerCapabilities()?.extensions?.[tasksExtension])
      listed.push((await client.listTools()).tools.filter(({ name }) => name !== 'test_changing_tool'))
      t.match(await client.callTool({ name: 'test_input_required_result_elicitation' }), {
        content: [{ text: 'Hello, Ada!' }]
      })
      await t.rejects(client.callTool({ name: 'failing_job' }), { code: -32021 })
    }
    t.same(listed[0], listed[1])
  }
)

for (const [at, way] of (Object.keys(ways) as Way[]).entries()) {
  t.test(`with an upstream over ${way}, the suite finds the same as without the gateway`, async (t) => {
    const { url, run } = runs[at] as NonNullable<(typeof runs)[number]>
    t.equal(
      (await send(url, { headers: jsonHeaders, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })).status,
      401,
      'authentication is on'
    )
    const found = differences(direct, run)
    const unexplained = found.filter((each) => !isOfReplicas(each, way))
    t.same(unexplained, [])
    const figures = figuresOf(run)
    const warned: Figures = { ...figures, scored: [figures.scored[0] + 1, figures.scored[1]] }
    t.same(found.length > unexplained.length ? warned : figures, expected(requirements, requirements, way))
    t.same(
      run.unscored.filter((scenario) => !isClean(scenario)).map(({ scenario }) => scenario),
      untold,
      'validation of headers and tasks are not scored, and pass'
    )
    t.equal(run.exitCode, 0)
  })
}

crossed(t, direct, requirements, '2025-11-25', ['Streamable HTTP', 'stdio', 'HTTP+SSE'])
