// The client half of the official suite against the gateway's own half of a client: its server is the upstream.

import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Check } from './suite.ts'

const suite = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url))
const driver = fileURLToPath(new URL('driver.ts', import.meta.url))

/** Scenarios that need no more of a client than to list and call, and a check that each must not lack. */
const scenarios = [['initialize', 'mcp-client-initialization'], ['tools_call', 'tool-add-numbers'], ['sse-retry', 'client-sse-retry-timing']] as const

for (const [scenario, check] of scenarios) {
  t.test(`${scenario} finds no fault with the gateway`, async (t) => {
    const folder = t.testdir()
    // Nothing of the test runner's own environment: it would load itself into the suite.
    await promisify(execFile)(process.execPath, [suite, 'client', '--command', `${process.execPath} ${driver}`, '--scenario', scenario, '--spec-version', '2025-11-25', '--output-dir', folder], { env: { PATH: process.env['PATH'] } })
    const [run] = await readdir(folder)
    const checks = JSON.parse(await readFile(join(folder, run ?? '', 'checks.json'), 'utf8')) as Check[]
    t.same(checks.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO'), [])
    t.match(checks.find(({ id }) => id === check), { status: 'SUCCESS' })
  })
}
