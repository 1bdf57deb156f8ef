// The package as a person gets it: packed, installed into an empty folder, and run from there by npx.

import t, { type Test } from 'tap'
import { createHash } from 'node:crypto'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, relative } from 'node:path'
import { allGone, descendants, gatehouse, signalAll, type Running } from './kit/process.ts'
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
    timeout: 240_000
  })

/** @param data where it keeps the key of its demo tenant */
async function runByNpx(t: Test, args: readonly string[], data: string) {
  const npx = gatehouse(t, args, { cwd: folder, env, node: 'env', nodeArgs: [...bare, 'npx'], script: 'mcp-gatehouse' })
  const key = (): string => readFileSync(join(folder, data, 'api-key'), 'utf8').trim()
  const { client } = await connectSdk(t, sdk32, `${await npx.ready}/t/demo/mcp`, key())
  return { npx, client }
}

/** As Ctrl+C does: the signal goes to all that npx has started, for npx passes on none. */
async function interrupt(npx: Running): Promise<void> {
  const all = descendants(npx.pid)
  signalAll([npx.pid, ...all], 'SIGINT')
  await npx.ended
  await allGone(all)
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

// A repository of its own: other tests run this checkout meanwhile, and the release script tags.
const parts = ['bin', 'deploy', 'docs', 'src', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json']
for (const name of [...parts, 'LICENSE', 'README.md', 'CHANGELOG.md', 'SECURITY.md', '.gitignore'])
  cpSync(join(root, name), join(checkout, name), { recursive: true })
// As for a release: what is new has its version.
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
writeFileSync(join(checkout, 'CHANGELOG.md'), changelog.replace(/^## Unreleased\n[^]*?(?=^## )/m, '## Unreleased\n\n'))
// The test command checks the types of these sources by itself.
const forPackage = JSON.parse(readFileSync(join(root, 'tsconfig.package.json'), 'utf8')) as { compilerOptions: object }
const compilerOptions = { ...forPackage.compilerOptions, noCheck: true }
writeFileSync(join(checkout, 'tsconfig.package.json'), JSON.stringify({ ...forPackage, compilerOptions }))
symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], {
    cwd: checkout,
    encoding: 'utf8'
  })
git('init', '--quiet')
git('add', '--all')
git('commit', '--quiet', '--message', 'all')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const made = `mcp-gatehouse-${version}`
const release = (...args: string[]) =>
  spawnSync('env', [...bare, process.execPath, 'scripts/release.ts', ...args], {
    cwd: checkout,
    env: { ...env, GIT_COMMITTER_NAME: 'test', GIT_COMMITTER_EMAIL: 'test@localhost' },
    encoding: 'utf8'
  })
const output = join(folder, 'release')
const dryRun = release('--dry-run', '--output', output)
if (dryRun.status !== 0) throw new Error(`the dry run failed:\n${dryRun.stdout}\n${dryRun.stderr}`)
npm(folder, ['install', '--omit=dev', join(output, `${made}.tgz`)])
const installed = join(folder, 'node_modules', 'mcp-gatehouse')

t.test(
  'the package holds JavaScript with its source maps, the documents and the licence, and no sources',
  async (t) => {
    const paths = globSync('**', { cwd: installed, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(installed, join(entry.parentPath, entry.name)))
    const expected = ['LICENSE', 'README.md', 'bin/gatehouse.mjs', 'dist/main.js', 'docs/config.md', 'package.json']
    t.same(
      expected.filter((path) => !paths.includes(path)),
      []
    )
    t.same(
      paths.filter(
        (path) => !/^(?:bin|dist|docs)\/|^(?:LICENSE|(?:README|CHANGELOG|SECURITY)\.md|package\.json)$/.test(path)
      ),
      []
    )
    t.same(
      paths.filter((path) => path.endsWith('.ts')),
      []
    )
    // The console is bundled.
    t.ok(paths.includes('dist/console/index.html'))
    const scripts = paths.filter((path) => path.endsWith('.js') && !path.startsWith('dist/console/'))
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

t.test('a release has the package, an SBOM of what it runs with, and checksums; a dry run tags nothing', async (t) => {
  t.same(readdirSync(output).sort(), ['SHA256SUMS', `${made}.cdx.json`, `${made}.tgz`])
  const sums = readFileSync(join(output, 'SHA256SUMS'), 'utf8').trim().split('\n')
  t.same(
    sums,
    [`${made}.cdx.json`, `${made}.tgz`].map((name) => `${sha256(join(output, name))}  ${name}`)
  )
  interface Component {
    readonly name: string
    readonly version: string
    readonly purl: string
    readonly hashes?: ReadonlyArray<{ readonly alg: string }>
  }
  const { bomFormat, metadata, components } = JSON.parse(readFileSync(join(output, `${made}.cdx.json`), 'utf8')) as {
    bomFormat: string
    metadata: { readonly component: Component }
    components: readonly Component[]
  }
  t.equal(bomFormat, 'CycloneDX')
  t.match(metadata.component, { name: 'mcp-gatehouse', version, purl: `pkg:npm/mcp-gatehouse@${version}` })
  // What npm has installed from the lock file of this checkout, and nothing else.
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly name?: string; readonly version: string; readonly dev?: boolean }>>
  }
  const locked = Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, each]) => `${each.name ?? path.replace(/^.*node_modules\//, '')}@${each.version}`)
  t.same([...new Set(components.map((each) => `${each.name}@${each.version}`))].sort(), [...new Set(locked)].sort())
  t.ok(components.every(({ purl, hashes }) => purl.startsWith('pkg:npm/') && hashes?.[0]?.alg === 'SHA-512'))
  t.equal(git('tag', '--list'), '')
})

t.test('a release tags what is committed, and its checksums hold', async (t) => {
  const released = join(folder, 'tagged')
  const { status, stdout, stderr } = release('--output', released)
  t.equal(status, 0, stderr)
  t.match(stdout, `Tagged v${version}.`)
  t.match(stdout, `git push origin v${version}`)
  t.equal(git('cat-file', '-t', `v${version}`).trim(), 'tag', 'annotated')
  t.equal(git('rev-parse', `v${version}^{commit}`), git('rev-parse', 'HEAD'))
  t.equal(spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: released }).status, 0)
  writeFileSync(join(released, `${made}.tgz`), 'something else')
  t.equal(spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: released }).status, 1, 'the control')
})

t.test(
  'a release is refused where something is not committed or its version is tagged, and says what to do',
  async (t) => {
    writeFileSync(join(checkout, 'left'), '')
    const dirty = release('--output', join(folder, 'other'))
    t.equal(dirty.status, 1)
    t.match(dirty.stderr, /not committed: commit or remove/)
    rmSync(join(checkout, 'left'))
    const again = release('--output', join(folder, 'other'))
    t.equal(again.status, 1)
    t.match(again.stderr, /is there already: give package\.json a new version/)
    t.notMatch(again.stderr, /CHANGELOG|deploy/, 'the control')
  }
)

t.test('a release is refused where the changelog, the chart or the manifests speak of another version', async (t) => {
  const change = (file: string, pattern: RegExp | string, by: string): void => {
    const path = join(checkout, file)
    writeFileSync(path, readFileSync(path, 'utf8').replace(pattern, by))
  }
  change('CHANGELOG.md', /^## Unreleased$/m, '## Unreleased\n\n- Something.\n')
  change('CHANGELOG.md', `## ${version}`, `## ${version}0`)
  change('deploy/helm/gatehouse/Chart.yaml', /ersion: \S+$/gm, 'ersion: 9.9.9')
  change('deploy/kubernetes/base/deployment.yaml', /gatehouse:\d\S+/, 'gatehouse:9.9.9')
  const { status, stderr } = release('--output', join(folder, 'other'))
  git('checkout', '--quiet', '.')
  t.equal(status, 1)
  t.match(stderr, `no section "## ${version}"`)
  t.match(stderr, /lines below "## Unreleased": move them/)
  for (const what of ['Chart.yaml: version', 'Chart.yaml: appVersion', 'deployment.yaml: the tag of its image'])
    t.match(stderr, `${what} is 9.9.9: make it ${version}, as package.json has.`)
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
  const { npx, client } = await runByNpx(t, ['serve', '--mcp-json', 'mcp.json', '--port', '0'], 'data')
  t.match(await client.callTool({ name: 'small__pid' }), { content: [{ type: 'text', text: /^\d+$/ }] })
  await interrupt(npx)
})

t.test('npx mcp-gatehouse quickstart has its demo servers fetched and answers with all three', async (t) => {
  const { npx, client } = await runByNpx(t, ['quickstart', '--port', '0', '--data', 'demo'], 'demo')
  await until('all three are listed', async () => (await client.listTools()).tools.length === 35)
  for (const name of ['everything__echo', 'remote__echo'])
    t.match(await client.callTool({ name, arguments: { message: name } }), { content: [{ text: `Echo: ${name}` }] })
  t.match(await client.callTool({ name: 'memory__read_graph' }), { structuredContent: { entities: [] } })
  await interrupt(npx)
})

t.test('a quickstart whose data folder cannot be used says so before it fetches anything', async (t) => {
  const program = gatehouse(t, ['quickstart', '--port', '0', '--data', join('package.json', 'data')], {
    cwd: installed,
    // Where the next test fails to fetch them.
    env: { PATH: '/nowhere' },
    script: join(installed, 'bin', 'gatehouse.mjs')
  })
  t.same(await program.ended, { code: 1, signal: null })
  const said = program.stderr.filter((line) => line.startsWith('gatehouse: '))
  t.equal(said.length, 1)
  t.match(said, [/^gatehouse: The data folder .* cannot be used \(ENOTDIR\)\. Choose one with --data/])
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
    /^gatehouse needs Node 24 or newer; this is Node 20\.19\.0\. Install Node 24\. In a clone "npm start"/
  )
})
