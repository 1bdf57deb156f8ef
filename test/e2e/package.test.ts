// The package as a person gets it: packed, installed into an empty folder, and run from there by npx.

import t from 'tap'
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { allGone, descendants, gatehouse, type Running } from './kit/process.ts'
import { connectSdk, sdk32 } from './kit/sdk.ts'
import { until } from '../kit/until.ts'

const root = join(import.meta.dirname, '..', '..')
const smallServer = join(root, 'test', 'kit', 'small-server.sh')
// Outside of any package: npm would install into the one that it finds further up, and change that.
const [checkout, folder] = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'gatehouse-package-'))) as [string, string]
writeFileSync(join(folder, 'package.json'), '{ "private": true }')
t.teardown(() => {
  for (const made of [checkout, folder]) rmSync(made, { recursive: true, force: true })
})

/**
 * The person's own (certificates, proxies), without what the test runner or an outer npm say to theirs. npm asks the
 * registry for what it has not kept only, does not try for minutes, and its programs run on the Node of this test.
 */
const env = {
  ...(Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:_?TAP|npm_)/.test(name))) as Record<
    string,
    string
  >),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_fetch_timeout: '10000',
  npm_config_fetch_retry_mintimeout: '1000'
}
/** The test runner puts its own hooks for modules into the environment of whatever is started, with which tsc does not work. */
const bare = ['-u', 'NODE_OPTIONS'] as const
const npm = (cwd: string, args: readonly string[]): string =>
  execFileSync('env', [...bare, 'npm', ...args], {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000
  })

/** As Ctrl+C does: the signal goes to all that npx has started, for npx passes on none. */
async function interrupt(npx: Running): Promise<void> {
  const all = descendants(npx.pid)
  for (const pid of [npx.pid, ...all]) process.kill(pid, 'SIGINT')
  await npx.ended
  await allGone(all)
}

interface Packed {
  readonly filename: string
  readonly files: ReadonlyArray<{ readonly path: string }>
}

// Of a copy: other tests run this checkout meanwhile.
for (const name of ['bin', 'docs', 'src', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.package.json'])
  cpSync(join(root, name), join(checkout, name), { recursive: true })
for (const name of ['LICENSE', 'README.md']) cpSync(join(root, name), join(checkout, name))
symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
const output = npm(checkout, ['pack', '--json'])
const [packed] = Object.values(JSON.parse(output) as Record<string, Packed>)
if (packed === undefined) throw new Error(`npm pack says nothing of what it packed: ${output}`)
npm(folder, ['install', '--omit=dev', join(checkout, packed.filename)])
const installed = join(folder, 'node_modules', 'mcp-gatehouse')

t.test(
  'the package holds JavaScript with its source maps, the documents and the licence, and no sources',
  async (t) => {
    const paths = packed.files.map(({ path }) => path)
    const expected = ['LICENSE', 'README.md', 'bin/gatehouse.mjs', 'dist/main.js', 'docs/config.md', 'package.json']
    t.same(
      expected.filter((path) => !paths.includes(path)),
      []
    )
    t.same(
      paths.filter((path) => !/^(?:bin|dist|docs)\/|^(?:LICENSE|README\.md|package\.json)$/.test(path)),
      []
    )
    t.same(
      paths.filter((path) => path.endsWith('.ts')),
      []
    )
    const scripts = paths.filter((path) => path.endsWith('.js'))
    t.equal(scripts.length, globSync('**/*.ts', { cwd: join(root, 'src') }).length, 'one of each source')
    const { sourcesContent } = JSON.parse(readFileSync(join(installed, 'dist/gateway.js.map'), 'utf8')) as {
      sourcesContent: readonly string[]
    }
    t.same(sourcesContent, [readFileSync(join(root, 'src/gateway.ts'), 'utf8')])
  }
)

t.test('packing leaves nothing behind in the checkout', async (t) => {
  t.same(globSync('dist*', { cwd: checkout }), [])
})

t.test('an installation brings what the gateway needs, and nothing of its tests or demo servers', async (t) => {
  const names = globSync('{*,@*/*}', { cwd: join(folder, 'node_modules') })
  t.ok(names.includes('fastify'))
  t.same(
    names.filter((name) => /modelcontextprotocol|typescript|^tap$|^node$/.test(name)),
    []
  )
  const sizes = globSync('**', { cwd: folder }).map((path) => lstatSync(join(folder, path)).size)
  const mebibytes = sizes.reduce((sum, size) => sum + size, 0) / 1_048_576
  t.ok(mebibytes < 50, `${mebibytes.toFixed(1)} MiB`)
})

t.test('npx mcp-gatehouse serve --mcp-json FILE answers a tool call', async (t) => {
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { small: { command: smallServer } } }))
  const npx = gatehouse(t, ['serve', '--mcp-json', 'mcp.json', '--port', '0'], {
    cwd: folder,
    env,
    node: 'env',
    nodeArgs: [...bare, 'npx'],
    script: 'mcp-gatehouse'
  })
  const url = await npx.ready
  const { client } = await connectSdk(
    t,
    sdk32,
    `${url}/t/demo/mcp`,
    readFileSync(join(folder, 'data/api-key'), 'utf8').trim()
  )
  t.match(await client.callTool({ name: 'small__pid' }), { content: [{ type: 'text', text: /^\d+$/ }] })
  await interrupt(npx)
})

t.test('npx mcp-gatehouse quickstart has its demo servers fetched and answers with all three', async (t) => {
  const npx = gatehouse(t, ['quickstart', '--port', '0', '--data', 'demo'], {
    cwd: folder,
    env,
    node: 'env',
    nodeArgs: [...bare, 'npx'],
    script: 'mcp-gatehouse'
  })
  const url = await npx.ready
  const { client } = await connectSdk(
    t,
    sdk32,
    `${url}/t/demo/mcp`,
    readFileSync(join(folder, 'demo/api-key'), 'utf8').trim()
  )
  await until('all three are listed', async () => (await client.listTools()).tools.length === 35)
  for (const name of ['everything__echo', 'remote__echo'])
    t.match(await client.callTool({ name, arguments: { message: name } }), { content: [{ text: `Echo: ${name}` }] })
  t.match(await client.callTool({ name: 'memory__read_graph' }), { structuredContent: { entities: [] } })
  await interrupt(npx)
})

t.test('a quickstart that cannot fetch its demo servers says so and ends', async (t) => {
  const program = gatehouse(t, ['quickstart', '--port', '0', '--data', 'none'], {
    cwd: folder,
    env: { PATH: '/nowhere' },
    script: join(installed, 'bin', 'gatehouse.mjs')
  })
  t.same(await program.ended, { code: 1, signal: null })
  const said = program.stderr.filter((line) => line.startsWith('gatehouse: '))
  t.match(said, [/^gatehouse: The demo servers are not installed, and npx could not fetch them\./])
})

t.test('an older Node is told in one line what the package needs', async (t) => {
  const older = `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.19.0" } })`
  const program = gatehouse(t, ['quickstart'], {
    cwd: folder,
    nodeArgs: ['--import', older],
    script: join(installed, 'bin', 'gatehouse.mjs')
  })
  t.same(await program.ended, { code: 1, signal: null })
  t.same(program.stdout, [])
  t.equal(program.stderr.length, 1)
  t.match(
    program.stderr[0],
    /^gatehouse needs Node 24 or newer; this is Node 20\.19\.0\. .*npx -p node@24 -p mcp-gatehouse/
  )
})
