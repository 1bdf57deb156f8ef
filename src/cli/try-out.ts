// What a configuration leads to, tried: its upstreams started and asked, its issuers found.

import { createEgressGuard } from '../egress/guard.ts'
import { createFetchFor } from '../egress/fetch.ts'
import { discoverJwksUri, discoverProvider } from '../auth/provider-metadata.ts'
import { countOf } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { createGateway } from '../gateway.ts'
import { createLineLog } from '../observe/log.ts'
import { visible } from '../observe/text-log.ts'
import { isObject } from '../protocol/messages.ts'
import type { EndpointReport } from '../relay/methods/report.ts'
import type { Io } from './commands/command.ts'

/** How long upstreams may take to start and to list: some are installed by their first start. In milliseconds. */
const startMs = 60_000
/** Names of one kind that are printed for an endpoint. */
const maxNames = 20

/** Where tokens or people come from. */
interface TriedIssuer {
  readonly kind: 'issuer' | 'provider'
  readonly issuer: string
  readonly isWell: boolean
  /** What was found, or why nothing was. */
  readonly said: string
}

export interface Tried {
  readonly issuers: readonly TriedIssuer[]
  readonly endpoints: readonly EndpointReport[]
}

/** Each is told on standard error as it answers. */
export async function tryOut(snapshot: Snapshot, io: Io): Promise<Tried> {
  const [reports, issuers] = await Promise.all([reportsOf(snapshot, io), tryIssuers(snapshot, io)])
  const endpoints = reports.map((report) => ({
    ...report,
    missing: report.missing.map(({ upstream, reason }) => ({ upstream, reason: onceOnly(reason) }))
  }))
  return { issuers, endpoints }
}

export const isAllWell = ({ issuers, endpoints }: Tried): boolean =>
  issuers.every(({ isWell }) => isWell) && endpoints.every(({ missing }) => missing.length === 0)

export const textOfTried = ({ endpoints }: Tried): string => endpoints.map(textOfReport).join('')

/** Each is asked for its metadata once. */
async function tryIssuers({ tenants, egress }: Snapshot, { stderr }: Io): Promise<TriedIssuer[]> {
  const auths = [...tenants.values()].map(({ auth }) => auth)
  const issuers = auths.flatMap(({ issuers }) => issuers.filter(({ jwksUri }) => jwksUri === undefined))
  const providers = auths.flatMap(({ login }) => (login === undefined ? [] : [login.provider]))
  const fetchFor = createFetchFor({ guard: createEgressGuard(egress) })
  async function told(kind: TriedIssuer['kind'], issuer: string, asked: Promise<string>): Promise<TriedIssuer> {
    const found = await asked.then(
      (said) => ({ isWell: true, said }),
      (error: unknown) => ({ isWell: false, said: (error as Error).message })
    )
    stderr.write(`  ${found.isWell ? 'ok   ' : 'FAILS'} ${kind} ${issuer}: ${visible(found.said)}\n`)
    return { kind, issuer, ...found }
  }
  return await Promise.all([
    ...byIssuer(issuers).map(async (each) => {
      const asked = discoverJwksUri(each, fetchFor('', [each.issuer]), AbortSignal.timeout(startMs))
      return await told(
        'issuer',
        each.issuer,
        asked.then((uri) => `its keys are at ${uri}`)
      )
    }),
    ...byIssuer(providers).map(async (each) => {
      const asked = discoverProvider(each, fetchFor('', [each.issuer]))
      const signIn = asked.then(({ authorization_endpoint: url }) => `people sign in at ${url}`)
      return await told('provider', each.issuer, signIn)
    })
  ])
}

const byIssuer = <T extends { readonly issuer: string }>(all: readonly T[]): T[] => [
  ...new Map(all.map((each) => [each.issuer, each])).values()
]

/** By a gateway that listens nowhere and writes nothing down; each upstream is told as it answers. */
async function reportsOf(snapshot: Snapshot, io: Io): Promise<EndpointReport[]> {
  const limits = { ...snapshot.limits, coldStartMs: startMs }
  const store = { kind: 'sqlite', path: ':memory:' } as const
  const isOfOneTenant = snapshot.tenants.size === 1
  const log = createLineLog('info', (line) => {
    const { msg, tenant, upstream, tools, seconds, err, stderr } = line
    const name = isOfOneTenant ? String(upstream) : `${String(tenant)}/${String(upstream)}`
    if (msg === 'upstream is ready')
      io.stderr.write(`  ok    ${name}: ${countOf(Number(tools), 'tool')}, ${String(seconds)} s\n`)
    else if (isObject(err) && upstream !== undefined)
      io.stderr.write(
        `  FAILS ${name}: ${visible(onceOnly(String(err['message'])))}\n` +
          (stderr === undefined ? '' : `        standard error: ${visible(stderr as string)}\n`)
      )
  })
  const gateway = await createGateway({ ...snapshot, limits, store }, { log, version: io.version, env: io.env })
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

/** Nothing is tried again here. */
const onceOnly = (text: string): string =>
  text.replace(/^.*Its last error: /s, '').replace(/ It (?:has been away|is tried again) .*$/s, '')

function textOfReport({ path, counts, toolTokens, parts, clashes, shortened, missing }: EndpointReport): string {
  const { tools, prompts, resources, templates } = counts
  const offers = [
    `${countOf(tools, 'tool')} (about ${toolTokens.toLocaleString('en')} tokens)`,
    countOf(prompts, 'prompt'),
    countOf(resources, 'resource'),
    countOf(templates, 'template')
  ]
  const lines = [
    `${path}: ${offers.join(', ')}`,
    ...shown(
      parts,
      'upstreams',
      ({ upstream, tools: count, tokens }) =>
        `  ${upstream}: ${countOf(count, 'tool')} (about ${tokens.toLocaleString('en')} tokens)`
    ),
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
