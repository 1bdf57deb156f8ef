// `check`: is a configuration valid, and, with --connect, what do its endpoints offer?

import { loginPath } from '../config/auth/login-config.ts'
import { providerPresets, stepsFor } from '../config/auth/providers/presets.ts'
import { loadConfig } from '../config/load.ts'
import { countOf } from '../config/problems.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import { createGateway } from '../gateway.ts'
import type { EndpointReport } from '../relay/methods/report.ts'
import { orProblems } from './offline.ts'
import type { Io } from './commands/command.ts'
import { openLog } from './run.ts'

/** How long upstreams may take to start and to list: some are installed by their first start. In milliseconds. */
const startMs = 60_000
/** Names of one kind that are printed for an endpoint. */
const maxNames = 20

/**
 * Prints all problems of a configuration, or the endpoints that the gateway would serve.
 * @param connects starts the upstreams, and prints what each endpoint offers
 * @returns the exit code: 1 for problems, and for an upstream that cannot be reached
 */
export function runCheck(file: string, connects: boolean, io: Io): Promise<number> {
  const { env, stdout, version } = io
  return orProblems(file, stdout, async () => {
    const snapshot = await loadConfig(file, { env })
    const { tenants } = snapshot
    const all = [...tenants.values()]
    const endpoints = all.flatMap((tenant) => [...tenant.endpoints.values()])
    const upstreams = all.flatMap((tenant) => [...tenant.upstreams.values()])
    stdout.write(
      `${file} is valid: ${countOf(all.length, 'tenant')}, ${countOf(upstreams.length, 'upstream')}, ` +
        `${countOf(endpoints.length, 'endpoint')}\n`
    )
    stdout.write(all.map((tenant) => providerSteps(tenant, snapshot.publicUrl)).join(''))
    if (!connects) {
      for (const endpoint of endpoints) stdout.write(`  ${endpoint.path}\n`)
      return 0
    }
    const reports = await reportsOf(snapshot, io, version)
    stdout.write(reports.map(textOfReport).join(''))
    return reports.some(({ missing }) => missing.length > 0) ? 1 : 0
  })
}

/** What an administrator has to set at the providers of a tenant, whose names the configuration says. */
function providerSteps({ id, auth, endpoints }: Tenant, publicUrl = ''): string {
  const urls = [...endpoints.values()].map(({ path }) => publicUrl + path).join(', ')
  const redirect = `${publicUrl}${loginPath(id)}/callback`
  const named = new Map(
    auth.issuers.flatMap(({ provider, issuer }) => (provider === undefined ? [] : [[provider, issuer] as const]))
  )
  return [...named]
    .map(([provider, issuer]) => {
      const preset = providerPresets[provider]
      const steps = stepsFor(preset, { urls, redirect }).map((step, at) => `    ${at + 1}. ${step}\n`)
      return `  ${id}: at ${preset.title}, ${issuer} (docs/providers/${provider}.md):\n${steps.join('')}`
    })
    .join('')
}

/** By a gateway that listens nowhere and writes nothing down. */
async function reportsOf(snapshot: Snapshot, io: Io, version: string): Promise<EndpointReport[]> {
  const limits = { ...snapshot.limits, coldStartMs: startMs }
  const store = { kind: 'sqlite', path: ':memory:' } as const
  const log = openLog(io, 'silent')
  const gateway = await createGateway({ ...snapshot, limits, store }, { log, version, env: io.env })
  const kill = (): void => gateway.killNow()
  process.on('exit', kill)
  try {
    await gateway.warm()
    return await gateway.report()
  } finally {
    await gateway.close()
    process.off('exit', kill)
  }
}

function textOfReport({ path, counts, toolTokens, clashes, shortened, missing }: EndpointReport): string {
  const { tools, prompts, resources, templates } = counts
  const offers = [
    `${countOf(tools, 'tool')} (about ${toolTokens.toLocaleString('en')} tokens)`,
    countOf(prompts, 'prompt'),
    countOf(resources, 'resource'),
    countOf(templates, 'template')
  ]
  const lines = [
    `${path}: ${offers.join(', ')}`,
    ...missing.map(({ upstream, reason }) => `  ! ${upstream} is missing: ${reason}`),
    ...shown(clashes, 'name clashes', ({ name, has, hasNot }) =>
      has === undefined
        ? `  ! ${hasNot} is left out: ${name} begins with the prefix of another upstream`
        : `  ! ${hasNot} is left out: ${has} has the name ${name}`
    ),
    ...shown(shortened, 'changed names', ({ whole, shown: name }) => `  ${whole} is shown as ${name}`)
  ]
  return lines.map((line) => `  ${line}\n`).join('')
}

const shown = <T>(items: readonly T[], what: string, lineOf: (item: T) => string): string[] => [
  ...items.slice(0, maxNames).map(lineOf),
  ...(items.length > maxNames ? [`  ... ${items.length - maxNames} ${what} more`] : [])
]
