// `npm run kubernetes`: compares what the real kustomize and helm make of deploy/kubernetes and deploy/helm. Both are
// installed by Go where they are missing. Ends with `N passed, N failed`.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const folder = join(root, '.tap', 'programs')
const programs = { kustomize: 'sigs.k8s.io/kustomize/kustomize/v5@v5.7.1', helm: 'helm.sh/helm/v3/cmd/helm@v3.19.0' }
const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, GOBIN: folder }

for (const [name, source] of Object.entries(programs)) {
  if (spawnSync(name, ['version'], { stdio: 'ignore', env }).status === 0) continue
  process.stderr.write(`${name} is not installed: go install ${source}\n`)
  if (spawnSync('go', ['install', source], { stdio: ['ignore', 2, 2], env }).status === 0) continue
  process.stdout.write(`missing: ${name}, and no Go that installs it; no manifest was made\n0 passed, 0 failed\n`)
  process.exit(0)
}
const { status } = spawnSync(process.execPath, [join(root, 'scripts', 'test.ts'), 'test/deploy/rendered.ts'], {
  cwd: root,
  stdio: 'inherit',
  env
})
process.exit(status ?? 1)
