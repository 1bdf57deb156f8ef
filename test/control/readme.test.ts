// The first tenant by API, as README.md says it.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('five lines make a tenant with an upstream and a key, and it serves', async (t) => {
  const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8')
  const [, lines = ''] = /### The first tenant by API[^]*?```sh\n([^]*?)```/.exec(readme) ?? []
  t.equal(lines.trim().split('\n').length, 5)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {}, top: { tenants: {} } })
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'ops.key'), `${adminKeys.platform}\n`)
  const script = lines
    .replace('http://127.0.0.1:8081', made.adminUrl)
    .replace('https://tickets.example.com/mcp', upstream.url)
    .replaceAll('tenants/acme', 'tenants/first')
  t.ok(script.includes(made.adminUrl) && script.includes(upstream.url))
  const { stdout } = await promisify(execFile)('bash', ['-ec', script.replaceAll('curl ', 'curl -fsS ')], {
    cwd: folder
  })
  const { key } = JSON.parse(stdout.slice(stdout.lastIndexOf('{"name":"ci"'))) as { key: string }
  const client = await legacyClient(made.url('default', 'first'), key)
  t.match((await client.request('tools/call', { name: 'tickets__echo', arguments: {} })).json, { result: {} })
})
