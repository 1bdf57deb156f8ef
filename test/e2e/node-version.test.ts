// Started by a Node that cannot run it, the program says so in one line, instead of a syntax error.

import t, { type Test } from 'tap'
import { spawnSync } from 'node:child_process'
import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { gatehouse } from './kit/process.ts'

/** Every other Node on the PATH that is too old. */
const programs = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => folder !== '' && !folder.includes('node_modules'))
  .map((folder) => join(folder, 'node'))
  .filter(executable)
const older = [...new Set(programs.map((program) => realpathSync(program)))]
  .map((node) => ({
    node,
    version: spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim().replace(/^v/, '')
  }))
  .filter(({ version }) => Number(version.split('.')[0]) < 24)

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // No Node there.
  }
}

async function saysSo(t: Test, version: string, options: Parameters<typeof gatehouse>[2]): Promise<void> {
  const program = gatehouse(t, ['serve', '--config', 'any.yaml'], options)
  t.same(await program.ended, { code: 1, signal: null })
  t.same(program.stdout, [])
  t.equal(program.stderr.length, 1)
  t.match(program.stderr[0], `gatehouse needs Node 24 or newer; this is Node ${version}.`)
  t.match(program.stderr[0], 'npm')
}

for (const { node, version } of older)
  t.test(`the Node ${version} of this machine`, (t) => saysSo(t, version, { node }))

for (const version of ['18.20.8', '20.19.0', '22.12.0']) {
  t.test(`a Node that calls itself ${version}`, (t) =>
    saysSo(t, version, {
      nodeArgs: [
        '--import',
        `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
      ]
    })
  )
}

t.test('Node 24 is new enough', async (t) => {
  const program = gatehouse(t, ['version'])
  t.same(await program.ended, { code: 0, signal: null })
  t.match(program.stdout, [/^\d+\.\d+\.\d+/])
})
