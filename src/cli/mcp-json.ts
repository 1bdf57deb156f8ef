// Runs a gateway on the file of another host: servers that cannot be used are left out and reported, so that the others
// run.

import { compileConfig, type CompileOptions } from '../config/load.ts'
import type { importMcpJson } from '../config/hosts/mcpjson.ts'
import { ConfigError, type Problem } from '../config/problems.ts'
import type { Configuration } from '../config/compile.ts'

export interface McpJsonSnapshot {
  readonly snapshot: Configuration
  readonly notes: readonly string[]
  /**
   * `mcp.json line 11, server github: GITHUB_TOKEN is not set; left out until it is set and the gateway is started
   * again`, one for each fault.
   */
  readonly leftOut: readonly string[]
  /** The servers that only lack environment variables, with these variables. */
  readonly unset: ReadonlyMap<string, readonly string[]>
}

const upstreamPath = /^tenants\.demo\.upstreams(?:\.([\w-]+)|\["([^"]+)"\])(?:\.|\[|$)/

/** @param imported what the file says. @throws ConfigError for faults that concern no server */
export function compileMcpJson(
  { config, notes, placeOf }: ReturnType<typeof importMcpJson>,
  options: CompileOptions
): McpJsonSnapshot {
  const { path } = options
  const { demo } = config.tenants
  const leftOut: string[] = []
  const unset = new Map<string, readonly string[]>()
  let { upstreams } = demo
  for (;;) {
    try {
      const tenants = { demo: { ...demo, upstreams } }
      return { snapshot: compileConfig(JSON.stringify({ ...config, tenants }), options), notes, leftOut, unset }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const faults = error.problems.map((problem) => ({ problem, name: nameIn(problem) }))
      const others = faults.filter(({ name }) => name === undefined || !Object.hasOwn(upstreams, name))
      if (others.length > 0)
        throw new ConfigError(
          path,
          others.map(({ problem }) => ofVariable(problem))
        )
      for (const { problem, name = '' } of faults) {
        const line = `${placeText(name, problem)}: ${reasonText(problem)}`
        leftOut.push(line)
        if (problem.variables !== undefined) unset.set(line, problem.variables)
      }
      const faulty = new Set(faults.map(({ name }) => name))
      upstreams = Object.fromEntries(Object.entries(upstreams).filter(([name]) => !faulty.has(name)))
    }
  }

  function placeText(name: string, { path: key }: Problem): string {
    const steps = key
      .replace(upstreamPath, '')
      .split(/[.[\]]+/)
      .filter((step) => step !== '')
    const { server, line } = placeOf(name, steps)
    return `${path}${line === undefined ? '' : ` line ${line}`}, server ${server}`
  }
}

/** Of keys that the file does not have. */
const variables: Readonly<Record<string, string>> = {
  'tenants.demo.auth.keys[0].key': 'GATEHOUSE_KEY',
  'vault.keys[0].key': 'GATEHOUSE_VAULT_KEY'
}

function ofVariable(problem: Problem): Problem {
  const { line: _none, ...rest } = problem
  const name = variables[problem.path]
  return name === undefined ? problem : { ...rest, path: '', message: `the value of ${name} ${problem.message}` }
}

const nameIn = ({ path }: Problem): string | undefined => {
  const [, plain, inQuotes] = upstreamPath.exec(path) ?? []
  return plain ?? inQuotes
}

function reasonText({ path, message, suggestion, variables }: Problem): string {
  if (variables !== undefined) {
    const [is, until] = variables.length === 1 ? ['is', 'it is'] : ['are', 'they are']
    return `${variables.join(', ')} ${is} not set; left out until ${until} set and the gateway is started again`
  }
  const key = path.replace(upstreamPath, '')
  return `${key === '' ? '' : `${key} `}${message}; left out.${suggestion === undefined ? '' : ` ${suggestion}`}`
}
