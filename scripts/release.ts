// `npm run release -- [--dry-run] [--output DIR]`: the files of a release of the version in package.json (package, SBOM
// in CycloneDX, SHA-256 checksums) and its tag in this clone. It publishes nothing and pushes nothing: it prints how.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false }, output: { type: 'string', default: 'release' } }
})
const isDryRun = values['dry-run']
const output = resolve(values.output)
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const tag = `v${version}`

const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** What stands against a release; each with what to do. */
function obstacles(): string[] {
  const found: string[] = []
  if (run('git', ['status', '--porcelain']).trim() !== '')
    found.push('There are changes that are not committed: commit or remove them.')
  if (run('git', ['tag', '--list', tag]).trim() !== '')
    found.push(`The tag ${tag} is there already: give package.json a new version (npm version --no-git-tag-version).`)
  const changes = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  if (!changes.split('\n').some((line) => line.startsWith(`## ${version}`)))
    found.push(`CHANGELOG.md has no section "## ${version}": say there what is new.`)
  return found
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
const sbom = run('npm', ['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--package-lock-only'])
writeFileSync(join(output, `mcp-gatehouse-${version}.cdx.json`), sbom)
const sums = readdirSync(output)
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(output, name)))
        .digest('hex')}  ${name}\n`
  )
writeFileSync(join(output, 'SHA256SUMS'), sums.join(''))

if (!isDryRun) run('git', ['tag', '--annotate', tag, '--message', `Gatehouse ${version}`])
process.stdout.write(`${isDryRun ? `Dry run: ${tag} is not tagged.` : `Tagged ${tag}.`} In ${output}:
${sums.join('')}Then, where everything is as it should be:
  git push origin ${tag}
  npm publish ${join(output, `mcp-gatehouse-${version}.tgz`)}
  docker build --build-arg VERSION=${version} --build-arg REVISION=$(git rev-parse HEAD) --build-arg NODE_DIGEST=@sha256:… .
`)
