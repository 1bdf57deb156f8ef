// The official conformance suite as a child process, and its findings as data.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { compiledCode } from '../kit/compiled-code.ts'

const program = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url)
)
const suite = join(program, '..', '..')

type Half = 'server' | 'client'

export type Status = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'

export interface Check {
  readonly id: string
  readonly status: Status
  readonly name?: string
  readonly errorMessage?: string
}

export interface Scenario {
  readonly scenario: string
  readonly checks: readonly Check[]
}

export interface Run {
  /** Those that count. */
  readonly scored: readonly Scenario[]
  /** Those that the suite runs and reports only. */
  readonly unscored: readonly Scenario[]
  readonly exitCode: number | null
  /** What it printed. */
  readonly output: string
}

export interface SuiteOptions {
  /** The requirement set; it fixes the scenarios and the revision they speak. */
  readonly requirements: string
  /** Sent as Bearer token with every request to the URL's origin. */
  readonly token?: string
}

/** Runs the server half of the suite against a URL. Findings are in the order of the requirement set. */
export async function runSuite(url: string, { requirements, token }: SuiteOptions): Promise<Run> {
  const imports = ['deadlines.ts', ...(token === undefined ? [] : ['bearer.ts'])].flatMap((file) => [
    '--import',
    new URL(file, import.meta.url).href
  ])
  const env = token === undefined ? {} : { GATEHOUSE_SUITE_ORIGIN: new URL(url).origin, GATEHOUSE_SUITE_TOKEN: token }
  return await runHalf('server', requirements, { imports, args: ['--url', url], env })
}

/**
 * Runs the client half, all scenarios of the set at once.
 * @param command that the suite starts for each scenario, with the URL of its server for a last argument
 */
export async function runClientSuite(
  command: string,
  requirements: string,
  env: Readonly<Record<string, string>>
): Promise<Run> {
  // Half a minute, unless it is said, in which a busy machine has not yet come to the last of them.
  const args = ['--command', command, '--timeout', '240000']
  return await runHalf('client', requirements, { imports: [], args, env })
}

interface HalfOptions {
  /** For node, before the suite. */
  readonly imports: readonly string[]
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

async function runHalf(half: Half, requirements: string, { imports, args, env }: HalfOptions): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-conformance-'))
  try {
    const suiteArgs = [half, ...args, '--requirements', requirements, '--output-dir', folder]
    const child = spawn(process.execPath, [...imports, program, ...suiteArgs], {
      // Nothing more of the test runner's own environment: it would load itself into the suite.
      env: { PATH: process.env['PATH'], ...compiledCode, ...env },
      stdio: ['ignore', 'pipe', 'pipe']
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const [exitCode] = (await once(child, 'close')) as [number | null]
    const { scored, unscored } = await requirementsOf(requirements, half)
    const found = await findings(folder)
    const pick = (names: readonly string[]): Scenario[] =>
      names.map((scenario) => ({ scenario, checks: found.get(scenario) ?? notWritten }))
    return { scored: pick(scored), unscored: pick(unscored), exitCode, output }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A scenario that throws leaves no findings. */
const notWritten: readonly Check[] = [
  { id: 'findings-written', status: 'FAILURE', errorMessage: 'the suite wrote no findings for this scenario' }
]

/** Below a folder of its own, where the name of a scenario has a slash. */
async function findings(folder: string): Promise<Map<string, readonly Check[]>> {
  const found = new Map<string, readonly Check[]>()
  for (const name of await readdir(folder, { recursive: true })) {
    const scenario = /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/.exec(name)?.[1]
    if (scenario !== undefined) found.set(scenario, JSON.parse(await readFile(join(folder, name), 'utf8')) as Check[])
  }
  return found
}

type RequirementSet = Readonly<Record<Half, string[]>> & {
  readonly not_scored: Array<{ readonly scenario: string; readonly leg: string }>
}

/** Names of the scenarios of a requirement set. */
export async function requirementsOf(revision: string, half: Half): Promise<{ scored: string[]; unscored: string[] }> {
  const set = parse(await readFile(join(suite, 'requirements', `${revision}.yaml`), 'utf8')) as RequirementSet
  return {
    scored: set[half],
    unscored: set.not_scored.filter(({ leg }) => leg === half).map(({ scenario }) => scenario)
  }
}
