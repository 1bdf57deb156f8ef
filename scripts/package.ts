// What `npm pack` and `npm publish` run before and after themselves (`prepack`, `postpack` in package.json): the
// JavaScript of src in dist, with source maps that hold their sources, for Node strips no types below node_modules.
// The console is bundled there, too. A checkout runs src as it is, and has no dist but while it is packed.

import { spawnSync } from 'node:child_process'
import { cpSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bundleConsole } from './console.ts'

const root = join(import.meta.dirname, '..')

rmSync(join(root, 'dist'), { recursive: true, force: true })
if (!process.argv.includes('--clean')) {
  const compiler = join(root, 'node_modules', '.bin', 'tsc')
  const { status, error } = spawnSync(compiler, ['--project', 'tsconfig.package.json'], {
    cwd: root,
    // Standard output belongs to npm: `npm pack --json` prints its result there.
    stdio: ['ignore', 2, 2]
  })
  if (status !== 0) {
    rmSync(join(root, 'dist'), { recursive: true, force: true })
    const reason = error?.message ?? `exit code ${status}`
    console.error(`The package cannot be built: ${compiler} failed (${reason}). Run "npm ci", then "npx tsc --noEmit".`)
    process.exit(1)
  }
  for (const file of globSync('**/*.mjs', { cwd: join(root, 'src') }))
    cpSync(join(root, 'src', file), join(root, 'dist', file))
  await bundleConsole(join(root, 'dist', 'console'))
}
