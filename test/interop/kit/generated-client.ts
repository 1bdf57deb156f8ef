// The OpenAPI document as other people's tools take it: openapi-typescript makes types of it, the compiler checks a
// program that knows nothing else of the admin API, and the program makes a tenant.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { adminGateway, adminKeys } from '../../kit/admin.ts'
import type { Outcome } from './foreign.ts'

/** The generator needs the compiler of before, which npm installs beside no other: it has a folder of its own. */
export const generator = ['openapi-typescript@7.13.0', 'typescript@5.9.3']

const root = join(import.meta.dirname, '..', '..', '..')
const strict = ['--strict', '--noUncheckedIndexedAccess', '--module', 'nodenext', '--target', 'es2024']

interface Ran {
  readonly code: number | null
  /** On either output. */
  readonly said: string
}

async function run(...args: readonly string[]): Promise<Ran> {
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const { stdout, stderr } = child
  if (stdout === null || stderr === null) throw new Error('a process has no output')
  const [said, errors, [code]] = await Promise.all([text(stdout), text(stderr), once(child, 'close')])
  return { code: code as number | null, said: said + errors }
}

/** @param folder in which the generator is installed */
export async function meetGeneratedClient(peer: string, folder: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const judge = (step: string, isRight: boolean, said: string) =>
    outcomes.push({ peer, step, failure: isRight ? undefined : said })
  const at = (name: string): string => join(folder, name)
  const check = (file: string) =>
    run(
      join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
      ...['--ignoreConfig', '--noEmit', '--types', '', ...strict, at(file)]
    )
  const ends: Array<() => unknown> = []
  try {
    const rig = await adminGateway({ teardown: (end) => ends.unshift(end) }, { upstreams: {} })
    await mkdir(folder, { recursive: true })
    await writeFile(at('openapi.json'), (await rig.call('GET', '/openapi.json')).text)
    await writeFile(at('package.json'), JSON.stringify({ private: true, type: 'module' }))
    await copyFile(join(root, 'test', 'interop', 'admin-client.mts.txt'), at('client.mts'))
    const cli = at('node_modules/openapi-typescript/bin/cli.js')
    const made = await run(cli, at('openapi.json'), '-o', at('api.d.ts'))
    judge('makes types of the document', made.code === 0, made.said)
    const checked = await check('client.mts')
    judge('a program that uses them type-checks', checked.code === 0, checked.said)
    const source = await readFile(at('client.mts'), 'utf8')
    await writeFile(at('wrong.mts'), source.replace('made.version', 'made.nothing'))
    const wrong = await check('wrong.mts')
    judge('one that is wrong does not', /'nothing' does not exist/.test(wrong.said), wrong.said)
    const ran = await run(at('client.mts'), rig.adminUrl, adminKeys.platform)
    judge('the program makes a tenant', ran.code === 0 && ran.said.includes('a generated client'), ran.said)
    return outcomes
  } finally {
    for (const end of ends) await end()
  }
}
