// The reference server over the transports that the official suite does not speak, and what the tests of conformance
// rest on. gateway-2025-11-25.test.ts runs the suite against it over Streamable HTTP.

import { createServer, type IncomingHttpHeaders } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema, ProgressNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { listen } from '../kit/listen.ts'
import { differences, passed } from './differences.ts'
import { startReference, stdioReference } from './reference.ts'
import { runSuite, type Run } from './suite.ts'

// The suite speaks Streamable HTTP only; what stands behind the gateway over the other two is looked at here.
const others: Record<string, (t: Test) => Promise<Transport>> = {
  stdio: async (t) => new StdioClientTransport(stdioReference(t.testdir())),
  'HTTP+SSE': async (t) => new SSEClientTransport(new URL(await startReference(t, 'sse')))
}

async function connected(t: Test, transport: Transport): Promise<{ client: Client; tools: string[] }> {
  const client = new Client({ name: 'direct', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept' as const,
    content: { username: 'ann', email: 'ann@example.com' }
  }))
  t.teardown(() => client.close())
  await client.connect(transport)
  return { client, tools: (await client.listTools()).tools.map(({ name }) => name) }
}

for (const [way, transport] of Object.entries(others)) {
  t.test(`over ${way} the reference server has the same tools, and asks and reports as well`, async (t) => {
    const { tools } = await connected(
      t,
      new StreamableHTTPClientTransport(new URL(await startReference(t, 'http'))) as Transport
    )
    const { client, tools: same } = await connected(t, await transport(t))
    t.same(same, tools)
    const { content } = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } })
    t.match(content, [{ text: 'User response: action: accept, content: {"username":"ann","email":"ann@example.com"}' }])
    // Not by `onprogress`: it drops a step that arrives together with the result.
    const steps: number[] = []
    client.setNotificationHandler(ProgressNotificationSchema, ({ params }) => {
      steps.push(params.progress)
    })
    await client.callTool({ name: 'test_tool_with_progress', _meta: { progressToken: 'steps' } })
    t.same(steps, [0, 50, 100])
    t.match(
      await client.callTool({ name: 'test_sampling', arguments: { prompt: 'hi' } }),
      { isError: true },
      'a capability that was not declared is not used'
    )
  })
}

t.test(
  'the token rides on every request of the suite, whose own Host and Origin stay; a server that refuses all scores nothing',
  async (t) => {
    const seen: IncomingHttpHeaders[] = []
    const origin = await listen(
      t,
      createServer(({ headers }, response) => {
        seen.push(headers)
        response.writeHead(404).end()
      })
    )
    const run = await runSuite(`${origin}/mcp`, { requirements: '2025-11-25', token: 'the-token' })
    t.same([...new Set(seen.map(({ authorization }) => authorization))], ['Bearer the-token'])
    t.same([...new Set(seen.map(({ host }) => host))], [new URL(origin).host, 'evil.example.com'])
    t.same(
      seen.filter(({ host }) => host === 'evil.example.com').map(({ origin }) => origin),
      ['http://evil.example.com']
    )
    t.equal(run.exitCode, 1)
    t.equal(passed(run), 0)
  }
)

t.test('a check that is lost, worse or new on the way is told', async (t) => {
  const run = (...checks: Array<[id: string, status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO']>): Run => ({
    scored: [{ scenario: 'ping', checks: checks.map(([id, status]) => ({ id, status })) }],
    unscored: [],
    exitCode: 0,
    output: ''
  })
  const direct = run(
    ['ping', 'SUCCESS'],
    ['wire-schema-valid', 'SUCCESS'],
    ['server-sse-streams-functional', 'SUCCESS']
  )
  t.same(differences(direct, direct), [])
  t.same(
    differences(
      direct,
      run(['ping', 'SUCCESS'], ['wire-schema-valid', 'SUCCESS'], ['server-sse-streams-functional', 'INFO'])
    ),
    []
  )
  t.same(
    differences(direct, run(['ping', 'WARNING'], ['added', 'FAILURE'], ['server-sse-streams-functional', 'SUCCESS'])),
    [
      'ping: ping is WARNING, and was SUCCESS',
      'ping: wire-schema-valid is missing, and was SUCCESS',
      'ping: ping is WARNING',
      'ping: added is FAILURE'
    ]
  )
})
