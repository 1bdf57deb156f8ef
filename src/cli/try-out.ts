// What a configuration leads to, tried: its upstreams started and asked, its issuers found.

import { createEgressGuard } from '../egress/guard.ts'
import { loginPath } from '../config/auth/login-config.ts'
import { createFetchFor, type Fetch } from '../egress/fetch.ts'
import { discoverJwksUri, discoverProvider } from '../auth/provider-metadata.ts'
import { countOf } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { createGateway } from '../gateway.ts'
import { createLineLog, type Log } from '../observe/log.ts'
import { visible } from '../observe/text-log.ts'
import { isObject } from '../protocol/messages.ts'
import type { EndpointReport } from '../relay/methods/report.ts'
import { besideLastLine } from '../upstream/stdio/start-error.ts'
import type { Io } from './commands/command.ts'

/** How long upstreams may take to start and to list: some are installed by their first start. In milliseconds. */
export const startMs = 60_000
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
  /** Upstreams that no endpoint has, as TENANT/UPSTREAM: nobody can call them, and they are not started. */
  readonly unused: readonly string[]
  readonly endpoints: readonly EndpointReport[]
}

/** Each is told on standard error as it answers. */
export async function tryOut(snapshot: Snapshot, io: Io): Promise<Tried> {
  const [reports, issuers] = await Promise.all([reportsOf(snapshot, io), tryIssuers(snapshot, io)])
  const endpoints = reports.map((report) => ({
    ...report,
    missing: report.missing.map(({ upstream, reason }) => ({ upstream, reason: onceOnly(reason) }))
  }))
  return { issuers, unused: unusedIn(snapshot), endpoints }
}

const unusedIn = ({ tenants }: Snapshot): string[] =>
  [...tenants.values()].flatMap(({ id, upstreams, endpoints }) => {
    const used = new Set([...endpoints.values()].flatMap(({ members }) => members.map(({ upstream }) => upstream)))
    return [...upstreams.keys()].filter((name) => !used.has(name)).map((name) => `${id}/${name}`)
  })

export const isAllWell = ({ issuers, endpoints }: Tried): boolean =>
  issuers.every(({ isWell }) => isWell) &&
  endpoints.every(({ missing, clashes }) => missing.length === 0 && clashes.length === 0)

export const textOfTried = ({ endpoints, unused }: Tried): string =>
  endpoints.map(textOfReport).join('') +
  unused.map((name) => `  ! ${name} is in no endpoint: nobody can call it, and it was not tried\n`).join('')

/** Each is asked for its metadata once. */
async function tryIssuers({ tenants, egress, publicUrl = '' }: Snapshot, { stderr }: Io): Promise<TriedIssuer[]> {
  const auths = [...tenants.values()].map(({ auth }) => auth)
  // The login front is the gateway itself, which does not listen here.
  const issuers = [...tenants.values()].flatMap(({ id, auth }) =>
    auth.issuers.filter(({ issuer }) => auth.login === undefined || issuer !== publicUrl + loginPath(id))
  )
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
      const fetch = fetchFor('', [each.issuer, each.jwksUri])
      const signal = AbortSignal.timeout(startMs)
      const asked = each.jwksUri === undefined ? discoverJwksUri(each, fetch, signal) : Promise.resolve(each.jwksUri)
      return await told(
        'issuer',
        each.issuer,
        asked.then(async (uri) => `its keys are at ${await withKeys(uri, fetch, signal)}`)
      )
    }),
    ...byIssuer(providers).map(async (each) => {
      const asked = discoverProvider(each, fetchFor('', [each.issuer]))
      const signIn = asked.then(({ authorization_endpoint: url }) => `people sign in at ${url}`)
      return await told('provider', each.issuer, signIn)
    })
  ])
}

const byIssuer = <T extends { readonly issuer: string; readonly jwksUri?: string | undefined }>(
  all: readonly T[]
): T[] => [...new Map(all.map((each) => [`${each.issuer} ${each.jwksUri ?? ''}`, each])).values()]

/** @returns the URL. @throws Error where there are no keys */
async function withKeys(uri: string, fetch: Fetch, signal: AbortSignal): Promise<string> {
  const answer = await fetch(uri, { headers: { accept: 'application/jwk-set+json, application/json' }, signal })
  if (answer.status !== 200) throw new Error(`its keys cannot be read: ${uri} answers with status ${answer.status}`)
  const set: unknown = await answer.json().catch(() => undefined)
  if (!isObject(set) || !Array.isArray(set['keys']) || set['keys'].length === 0)
    throw new Error(`${uri} has no keys (RFC 7517): tokens of the issuer would all be refused`)
  return uri
}

/** By a gateway that listens nowhere and writes nothing down; each upstream is told as it answers. */
async function reportsOf(snapshot: Snapshot, io: Io): Promise<EndpointReport[]> {
  const limits = { ...snapshot.limits, coldStartMs: startMs }
  const store = { kind: 'sqlite', path: ':memory:' } as const
  const log = toldAsTheyAnswer(snapshot.tenants.size === 1, io)
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

/** A log of which only that is told, on standard error, what upstreams answer. */
export const toldAsTheyAnswer = (isOfOneTenant: boolean, { stderr: output }: Pick<Io, 'stderr'>): Log =>
  createLineLog('info', (line) => {
    const { msg, tenant, upstream, tools, seconds, err, stderr } = line
    const name = isOfOneTenant ? String(upstream) : `${String(tenant)}/${String(upstream)}`
    if (msg === 'upstream is ready')
      output.write(`  ok    ${name}: ${countOf(Number(tools), 'tool')}, ${String(seconds)} s\n`)
    else if (isObject(err) && upstream !== undefined)
      output.write(
        `  FAILS ${name}: ${visible(onceOnly(String(err['message'])))}\n` +
          (stderr === undefined ? '' : `        standard error: ${visible(stderr as string)}\n`)
      )
  })

/** Nothing is tried again here, and the last line is told. */
const onceOnly = (text: string): string =>
  besideLastLine(text.replace(/^.*Its last error: /s, '').replace(/ It (?:has been away|is tried again) .*$/s, ''))

function textOfReport({ path, counts, toolTokens, parts, clashes, shortened, missing }: EndpointReport): string {
  const { tools, prompts, resources, templates } = counts
  const offers = [
    toolsText(tools, toolTokens),
    countOf(prompts, 'prompt'),
    countOf(resources, 'resource'),
    countOf(templates, 'template')
  ]
  const lines = [
    `${path}: ${offers.join(', ')}`,
    ...shown(parts, 'upstreams', ({ upstream, tools: count, tokens }) => `  ${upstream}: ${toolsText(count, tokens)}`),
    ...missing.map(({ upstream, reason }) => `  ! ${upstream} is missing: ${reason}`),
    ...shown(clashes, 'name clashes', ({ name, has, hasNot }) =>
      has === undefined
        ? `  ! ${hasNot} is left out: ${name} begins with the prefix of another upstream. Rename or deny it`
        : `  ! ${hasNot} is left out: ${has} has the name ${name}. Rename one of them, or deny ${hasNot}`
    ),
    ...shown(shortened, 'changed names', ({ whole, shown: name }) => `  ${whole} is shown as ${name}`)
  ]
  return lines.map((line) => `  ${line}\n`).join('')
}

const toolsText = (count: number, tokens: number): string =>
  countOf(count, 'tool') + (count === 0 ? '' : ` (about ${tokens.toLocaleString('en')} tokens)`)

const shown = <T>(items: readonly T[], what: string, lineOf: (item: T) => string): string[] => [
  ...items.slice(0, maxNames).map(lineOf),
  ...(items.length > maxNames ? [`  ... ${items.length - maxNames} ${what} more`] : [])
]
