// The official conformance suite as a child process, and its findings as data.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { compiledCode } from '../kit/compiled-code.ts'

const suite = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/conformance/', import.meta.url))

export type Status = 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'

export interface Check {
  readonly id: string
  readonly status: Status
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
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-conformance-'))
  try {
    const child = spawn(
      process.execPath,
      [
        ...['deadlines.ts', ...(token === undefined ? [] : ['bearer.ts'])].flatMap((file) => [
          '--import',
          new URL(file, import.meta.url).href
        ]),
        join(suite, 'dist', 'index.js'),
        'server',
        '--url',
        url,
        '--requirements',
        requirements,
        '--output-dir',
        folder
      ],
      {
        // Nothing more of the test runner's own environment: it would load itself into the suite.
        env: {
          PATH: process.env['PATH'],
          ...compiledCode,
          ...(token === undefined ? {} : { GATEHOUSE_SUITE_ORIGIN: new URL(url).origin, GATEHOUSE_SUITE_TOKEN: token })
        },
        stdio: ['ignore', 'pipe', 'pipe']
      }
    )
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const [exitCode] = (await once(child, 'close')) as [number | null]
    const { scored, unscored } = await requirementsOf(requirements)
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

async function findings(folder: string): Promise<Map<string, readonly Check[]>> {
  const found = new Map<string, readonly Check[]>()
  for (const name of await readdir(folder)) {
    const file = join(folder, name, 'checks.json')
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1]
    if (scenario !== undefined && existsSync(file))
      found.set(scenario, JSON.parse(await readFile(file, 'utf8')) as Check[])
  }
  return found
}

interface RequirementSet {
  readonly server: string[]
  readonly not_scored: Array<{ readonly scenario: string; readonly leg: string }>
}

async function requirementsOf(revision: string): Promise<{ scored: string[]; unscored: string[] }> {
  const { server, not_scored: rest } = parse(
    await readFile(join(suite, 'requirements', `${revision}.yaml`), 'utf8')
  ) as RequirementSet
  return { scored: server, unscored: rest.filter(({ leg }) => leg === 'server').map(({ scenario }) => scenario) }
}
