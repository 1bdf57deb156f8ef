// `npm run release -- [--dry-run] [--output DIR]`: the files of a release of the version in package.json (package, SBOM
// in CycloneDX, SHA-256 checksums) and its tag in this clone. It publishes nothing and pushes nothing: it prints how.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false }, output: { type: 'string', default: 'release' } }
})
const isDryRun = values['dry-run']
const output = resolve(values.output)
const readJson = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'))
const { name, version } = readJson('package.json') as { name: string; version: string }
const tag = `v${version}`

const run = (program: string, args: readonly string[], cwd = root): string =>
  execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** What stands against a release; each with what to do. */
function obstacles(): string[] {
  const found: string[] = []
  if (run('git', ['status', '--porcelain']).trim() !== '')
    found.push('There are changes that are not committed: commit or remove them.')
  if (run('git', ['tag', '--list', tag]).trim() !== '')
    found.push(`The tag ${tag} is there already: give package.json a new version (npm version --no-git-tag-version).`)
  return [...found, ...changelogObstacles(), ...versionObstacles()]
}

function changelogObstacles(): string[] {
  const found: string[] = []
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m).slice(1)
  // With its date or without.
  const headings = sections.map((section) => section.split('\n', 1)[0]?.replace(/ - \d{4}-\d{2}-\d{2}$/, ''))
  if (!headings.includes(version)) found.push(`CHANGELOG.md has no section "## ${version}": say there what is new.`)
  if (sections.some((section) => /^Unreleased\n\s*\S/.test(section)))
    found.push(`CHANGELOG.md has lines below "## Unreleased": move them to "## ${version}".`)
  return found
}

/** Of what is deployed: the chart and the manifests name the image by its version. */
function versionObstacles(): string[] {
  const [chart, deployment] = ['deploy/helm/gatehouse/Chart.yaml', 'deploy/kubernetes/base/deployment.yaml']
  const named: ReadonlyArray<readonly [file: string, what: string, pattern: RegExp]> = [
    [chart, 'version', /^version: *(\S+)$/m],
    [chart, 'appVersion', /^appVersion: *(\S+)$/m],
    [deployment, 'the tag of its image', /^ *image: *gatehouse:(\S+)$/m]
  ]
  return named.flatMap(([file, what, pattern]) => {
    const [, given] = pattern.exec(readFileSync(join(root, file), 'utf8')) ?? []
    return given === version
      ? []
      : [`${file}: ${what} is ${given ?? 'missing'}: make it ${version}, as package.json has.`]
  })
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; devDependencies?: unknown }>>
}

/**
 * Of the lock file without what only development needs: asked to omit that, `npm sbom` leaves out also what both need.
 */
function sbom(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sbom-'))
  try {
    const lock = readJson('package-lock.json') as Lock
    const { devDependencies: _, ...manifest } = readJson('package.json') as Record<string, unknown>
    const packages = Object.fromEntries(Object.entries(lock.packages).filter(([, each]) => each.dev !== true))
    delete packages['']?.devDependencies
    // npm calls it what its folder is called.
    const place = join(folder, name)
    mkdirSync(place)
    writeFileSync(join(place, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(place, 'package-lock.json'), JSON.stringify({ ...lock, packages }))
    return run('npm', ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'], place)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const found = obstacles()
if (found.length > 0) {
  process.stderr.write(`${found.join('\n')}\n`)
  process.exit(1)
}
mkdirSync(output, { recursive: true })
if (readdirSync(output).length > 0) {
  process.stderr.write(`${output} is not empty: name another folder with --output.\n`)
  process.exit(1)
}
run('npm', ['pack', '--pack-destination', output])
writeFileSync(join(output, `${name}-${version}.cdx.json`), sbom())
const sums = readdirSync(output)
  .sort()
  .map(
    (file) =>
      `${createHash('sha256')
        .update(readFileSync(join(output, file)))
        .digest('hex')}  ${file}\n`
  )
writeFileSync(join(output, 'SHA256SUMS'), sums.join(''))

if (!isDryRun) run('git', ['tag', '--annotate', tag, '--message', `Gatehouse ${version}`])
process.stdout.write(`${isDryRun ? `Dry run: ${tag} is not tagged.` : `Tagged ${tag}.`} In ${output}:
${sums.join('')}Then, where everything is as it should be:
  git push origin ${tag}
  npm publish ${join(output, `${name}-${version}.tgz`)}
  docker build --build-arg VERSION=${version} --build-arg REVISION=$(git rev-parse HEAD) --build-arg NODE_DIGEST=@sha256:… .
`)
