// The client half of the official suite against the gateway's own half of a client: its server is the upstream. Those
// scenarios in which a person signs in are the end client's own affair.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { compiledCode } from '../kit/compiled-code.ts'
import { clientScenarios } from './figures.ts'
import type { Check } from './suite.ts'

const suite = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url)
)
const driver = fileURLToPath(new URL('driver.ts', import.meta.url))

/** Whether these are in order depends on what the caller does, and on which methods there still are. */
const notOurs = ({ id, status, name }: Check & { readonly name?: string }): boolean =>
  status === 'SKIPPED' &&
  (id.startsWith('sep-2575-client-declares-') ||
    /McpMethodHeader_(?:initialize|notifications_initialized)$/.test(name ?? ''))

/** The same programs start over and over. */
const compiled = { NODE_COMPILE_CACHE: t.testdir(), ...compiledCode }
/** What the suite gives the driver. */
const patienceMs = 240_000

// Each is a suite, a gateway and a client that start, and then wait for each other.
t.jobs = 3

for (const [version, some] of Object.entries(clientScenarios)) {
  for (const [scenario, check] of Object.entries(some)) {
    t.test(`${scenario} of ${version} finds no fault with the gateway`, { buffered: true }, async (t) => {
      const folder = t.testdir()
      // Nothing of the test runner's own environment: it would load itself into the suite.
      const child = execFile(
        process.execPath,
        [
          suite,
          'client',
          '--command',
          `${process.execPath} ${driver}`,
          '--scenario',
          scenario,
          // Scenarios of extensions belong to none.
          ...(version === 'extension' ? [] : ['--spec-version', version]),
          // Half a minute, unless it is said, in which a busy machine has not yet started the driver.
          '--timeout',
          String(patienceMs),
          '--output-dir',
          folder
        ],
        { env: { PATH: process.env['PATH'], ...compiled } }
      )
      let output = ''
      child.stderr?.on('data', (text: string) => {
        output += text
      })
      const [code] = (await once(child, 'close')) as [number]
      t.equal(code, 0, code === 0 ? 'the driver came to its end' : output)
      // Below a folder of its own, where the name of the scenario has a slash.
      const found = (await readdir(folder, { recursive: true })).find((name) => name.endsWith('checks.json')) ?? ''
      const checks = JSON.parse(await readFile(join(folder, found), 'utf8')) as Check[]
      t.same(
        checks.filter((check) => check.status !== 'SUCCESS' && check.status !== 'INFO' && !notOurs(check)),
        []
      )
      t.ok(
        checks.some(({ id, status }) => id === check && status === 'SUCCESS'),
        `${check} among ${[...new Set(checks.map(({ id }) => id))].join(', ')}`
      )
    })
  }
}
