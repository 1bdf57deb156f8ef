// Other people's server, over every transport: the reference server "everything".

import { freePort } from '../kit/free-port.ts'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { fetchListing } from '../../src/upstream/listing/listing.ts'
import {
  callOf,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import type { Upstream } from '../../src/protocol/seams.ts'

const everything = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

async function exercise(t: Test, upstream: Upstream): Promise<void> {
  const listing = await fetchListing(upstream, never)
  t.ok(listing.tools.length >= 8, `${listing.tools.length} tools`)
  t.ok(listing.prompts.length > 0)
  t.ok(listing.resources.length > 0)
  t.same(listing.partial, [])
  t.match(await upstream.request(callOf('echo', { message: 'hello' }), recordingClient(), never), {
    content: [{ type: 'text', text: 'Echo: hello' }]
  })
  const client = recordingClient()
  await upstream.request(
    callOf('trigger-long-running-operation', { duration: 1, steps: 4 }, { progressToken: 'tok' }),
    client,
    never
  )
  t.same(
    client.notified
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => [params?.['progressToken'], params?.['progress']]),
    [1, 2, 3, 4].map((step) => ['tok', step])
  )
  await t.rejects(
    upstream.request({ method: 'prompts/get', params: { name: 'no-such-prompt' } }, recordingClient(), never)
  )
}

t.test('over stdio', async (t) => {
  const { connector, supervisor } = testConnector()
  const upstream = await connector.connect(
    stdioDefinition({}, { args: [everything, 'stdio'] }),
    handshake,
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  await exercise(t, upstream)
  await upstream.close()
  await until(() => supervisor.count() === 0, 'its process has ended')
})

for (const [way, mode, path] of [
  ['Streamable HTTP', 'streamableHttp', '/mcp'],
  ['HTTP+SSE, which is found out', 'sse', '/sse']
] as const) {
  t.test(`over ${way}`, async (t) => {
    const port = await freePort()
    const child = spawn(process.execPath, [everything, mode], {
      env: { ...process.env, PORT: String(port) },
      stdio: 'ignore'
    })
    t.teardown(() => child.kill('SIGKILL'))
    const { connector } = testConnector()
    let upstream: Upstream | undefined
    await until(async () => {
      upstream = await connector
        .connect(httpDefinition(`http://127.0.0.1:${port}${path}`), handshake, recordingEvents())
        .catch(() => undefined)
      return upstream !== undefined
    }, 'the server listens')
    t.teardown(() => upstream?.close())
    await exercise(t, upstream as Upstream)
  })
}
