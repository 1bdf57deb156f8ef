// A small valid configuration, ways to break it, and what the compiler says of it.

import type { Test } from 'tap'
import { compileConfig, type CompileOptions } from '../../src/config/load.ts'
import { ConfigError, type Problem } from '../../src/config/problems.ts'

export type Steps = readonly (string | number)[]

export const goodKey = 'q7Xw2Zr9Lk4Vb8Nt'

export function base(): Record<string, unknown> {
  return {
    tenants: {
      acme: {
        origins: ['https://claude.ai'],
        auth: {
          issuers: [{ issuer: 'https://idp.example.com' }],
          keys: [{ name: 'ci', key: goodKey, scopes: ['mcp'] }]
        },
        upstreams: {
          files: { command: 'npx', args: ['-y', 'some-server'], env: { A: 'b' } },
          tickets: { type: 'http', url: 'https://tickets.example.com/mcp', headers: { 'X-Api-Key': 'abc' } }
        },
        endpoints: { default: { upstreams: ['files', 'tickets'] }, files: { upstreams: ['files'], prefix: '' } }
      }
    }
  }
}

/** The base with one value put in place, or taken away where it is undefined. */
export function withValue(
  steps: Steps,
  value: unknown,
  start: Record<string, unknown> = base()
): Record<string, unknown> {
  let at = start
  steps.slice(0, -1).forEach((step, index) => {
    at = (at[step] ??= typeof steps[index + 1] === 'number' ? [] : {}) as Record<string, unknown>
  })
  const last = steps.at(-1) ?? ''
  if (value === undefined) delete at[last]
  else at[last] = value
  return start
}

export const compiled = (config: object | string, options: Partial<CompileOptions> = {}) =>
  compileConfig(typeof config === 'string' ? config : JSON.stringify(config, null, 1), {
    path: '/srv/gatehouse/config.yaml',
    env: {},
    ...options
  })

export function problemsOf(config: object | string, options: Partial<CompileOptions> = {}): readonly Problem[] {
  try {
    compiled(config, options)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

export interface Case {
  readonly name: string
  readonly steps: Steps
  readonly bad: unknown
  readonly good: unknown
  /** Where the problem is told, if not at the steps themselves. */
  readonly path?: string
  readonly message: RegExp
  readonly start?: Record<string, unknown>
}

/** Each case: exactly one problem with the bad value, at its path; none with the good one. */
export function refusals(t: Test, cases: readonly Case[]): void {
  for (const { name, steps, bad, good, path, message, start } of cases) {
    t.test(name, async (t) => {
      const fresh = () => structuredClone(start ?? base())
      const problems = problemsOf(withValue(steps, bad, fresh()))
      t.match(problems, [{ path: path ?? steps.join('.').replace(/\.(\d+)/g, '[$1]'), message }])
      t.equal(problems.length, 1, 'nothing else is wrong')
      t.same(problemsOf(withValue(steps, good, fresh())), [], 'the positive control passes')
    })
  }
}
