// `check`: prints all problems of a configuration, or the endpoints that the gateway would serve.

import { loadConfig } from '../config/load.ts'
import { ConfigError, countOf, problemLine } from '../config/problems.ts'

/** Where a command writes: process.stdout and its kin. */
export interface Output {
  write(text: string): unknown
}

export interface CheckOptions {
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: Output
}

/** @returns the exit code: 0 valid, 1 not */
export async function runCheck({ file, env, stdout }: CheckOptions): Promise<number> {
  try {
    const { tenants } = await loadConfig(file, { env })
    const all = [...tenants.values()]
    const endpoints = all.flatMap((tenant) => [...tenant.endpoints.values()])
    const upstreams = all.flatMap((tenant) => [...tenant.upstreams.values()])
    stdout.write(
      `${file} is valid: ${countOf(all.length, 'tenant')}, ${countOf(upstreams.length, 'upstream')}, ` +
        `${countOf(endpoints.length, 'endpoint')}\n`
    )
    for (const endpoint of endpoints) stdout.write(`  ${endpoint.path}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printProblems(error, file, stdout)
    return 1
  }
}

/** One line each, and how many. */
export function printProblems(error: ConfigError, file: string, output: Output): void {
  for (const problem of error.problems) output.write(`${problemLine(problem)}\n`)
  output.write(`${countOf(error.problems.length, 'problem')} in ${file}\n`)
}
