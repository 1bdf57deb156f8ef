// `check`: is a configuration valid, or the file of another host usable, and, with --connect, what do its endpoints
// offer?

import { readFile } from 'node:fs/promises'
import { loginPath } from '../config/auth/login-config.ts'
import { exposedSecrets } from '../config/auth/exposed-secrets.ts'
import { isProviderName, productOf, providerPresets, stepsFor } from '../config/auth/providers/presets.ts'
import { unobtainableScopes } from '../config/auth/unobtainable-scopes.ts'
import { isHostFile } from '../config/hosts/host-file.ts'
import { importMcpJson } from '../config/hosts/mcpjson.ts'
import { loadConfig } from '../config/load.ts'
import { unmatchedTargets } from '../config/policy/unmatched-targets.ts'
import { ConfigError, countOf } from '../config/problems.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import type { Io } from './commands/command.ts'
import { visible } from '../observe/text-log.ts'
import { hosts } from '../hosts/hosts.ts'
import { finished } from '../protocol/json-steps.ts'
import { compileMcpJson } from './mcp-json.ts'
import { orProblems } from './offline.ts'
import { jsonText } from './printed.ts'
import { isAllWell, textOfTried, tryOut } from './try-out.ts'

export interface CheckOptions {
  /** Starts the upstreams, and prints what each endpoint offers. */
  readonly connects: boolean
  /** Unset environment variables and absent files of references are no problem; for CI. */
  readonly withoutEnv?: boolean
  /** Default: text. */
  readonly form?: 'text' | 'json'
}

/** The result for a file that can be used, at least in part. */
interface Checked {
  readonly kind: 'configuration' | 'mcp.json'
  /** For the file of another host: the problems of the servers that are left out. */
  readonly problems: ReadonlyArray<{ readonly message: string }>
  readonly notes: readonly string[]
  /** The unset variables, and the absent files, as file:PATH. */
  readonly unset: readonly string[]
  readonly upstreams: number
  /** Their paths. */
  readonly endpoints: readonly string[]
}

interface CheckedText extends Checked {
  readonly text: string
  /** Not given: it cannot be tried. */
  readonly snapshot?: Snapshot
}

/**
 * Prints all problems of a configuration, or the endpoints that the gateway would serve.
 * @param file a configuration, or the file of another host
 * @returns the exit code: 1 for problems, and for an upstream that cannot be reached
 */
export function runCheck(file: string, options: CheckOptions, io: Io): Promise<number> {
  const { connects, withoutEnv = false, form = 'text' } = options
  const { stdout } = io
  const run = async (): Promise<number> => {
    const mcpJson = await mcpJsonIn(file)
    const { text, snapshot, ...checked } =
      mcpJson === undefined ? await checkConfig(file, withoutEnv, io) : checkMcpJson(file, mcpJson, withoutEnv, io)
    if (form === 'text') stdout.write(text)
    const tried = connects && snapshot !== undefined ? await tryOut(snapshot, io) : undefined
    if (form === 'json') stdout.write(jsonText({ file, ...checked, ...(tried && { tried }) }))
    else if (tried !== undefined) stdout.write(textOfTried(tried))
    else if (checked.kind === 'configuration') stdout.write(checked.endpoints.map((path) => `  ${path}\n`).join(''))
    return checked.problems.length === 0 && (tried === undefined || isAllWell(tried)) ? 0 : 1
  }
  return orProblems(file, stdout, run, form)
}

/** @throws ConfigError */
async function checkConfig(file: string, withoutEnv: boolean, { env }: Io): Promise<CheckedText> {
  let snapshot: Snapshot
  try {
    snapshot = await loadConfig(file, { env })
  } catch (error) {
    if (!withoutEnv || !(error instanceof ConfigError)) throw error
    return withoutSecrets(file, error)
  }
  const all = [...snapshot.tenants.values()]
  const endpoints = all.flatMap((tenant) => [...tenant.endpoints.values()].map(({ path }) => path))
  const upstreams = all.reduce((sum, tenant) => sum + tenant.upstreams.size, 0)
  const unmatched = all.map((tenant) => finished(unmatchedTargets(tenant)))
  const notes = [
    ...all.flatMap(unobtainableScopes),
    ...unmatched.flat(),
    ...exposedSecrets(all),
    ...all.flatMap(proofNotes)
  ]
  const text =
    `${file} is valid: ${countOf(all.length, 'tenant')}, ${countOf(upstreams, 'upstream')}, ` +
    `${countOf(endpoints.length, 'endpoint')}\n` +
    all.map((tenant) => providerSteps(tenant, snapshot.publicUrl)).join('') +
    notes.map((note) => `  note: ${note}\n`).join('')
  return { kind: 'configuration', problems: [], notes, unset: [], upstreams, endpoints, text, snapshot }
}

const proofNotes = ({ id, auth }: Tenant): string[] =>
  auth.dpop === 'required'
    ? [
        `${id} takes tokens with a proof of DPoP only (auth.dpop). Few hosts can send one: of those that ` +
          `"gatehouse connect" sets up (${titlesOfHosts}) none is known to. They cannot sign in; API keys are ` +
          'still taken. "accepted" takes both (docs/authentication.md).'
      ]
    : []

const titlesOfHosts = Object.values(hosts)
  .map(({ title }) => title)
  .join(', ')

/** The text of a file of another host; undefined: it is none. */
async function mcpJsonIn(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text !== undefined && isHostFile(text, file) ? text : undefined
}

function checkMcpJson(file: string, text: string, withoutEnv: boolean, io: Io): CheckedText {
  const env = {
    ...io.env,
    GATEHOUSE_KEY: 'any-key-that-is-long-enough',
    GATEHOUSE_VAULT_KEY: Buffer.alloc(32).toString('base64')
  }
  const imported = importMcpJson(text, file, process.cwd())
  const { snapshot, notes, unset, ...made } = compileMcpJson(imported, { path: file, env })
  const leftOut = withoutEnv ? made.leftOut.filter((line) => !unset.has(line)) : made.leftOut
  const variables = withoutEnv ? [...new Set([...unset.values()].flat())].toSorted() : []
  const upstreams = [...snapshot.tenants.values()].flatMap((tenant) => [...tenant.upstreams.keys()])
  const noted = new Set(notes.map(serverIn))
  const withNotes = upstreams.filter((name) => noted.has(imported.placeOf(name).server)).length
  const plain = upstreams.length - withNotes
  const disabled = Object.values(imported.config.tenants.demo.upstreams).filter((each) => each['disabled'] === true)
  const counts = [
    `${countOf(plain, 'server')} can be used as ${plain === 1 ? 'it stands' : 'they stand'}`,
    ...(withNotes === 0 ? [] : [`${withNotes} with notes`]),
    ...(disabled.length === 0 ? [] : [`${disabled.length} disabled`]),
    ...(leftOut.length === 0 ? [] : [countOf(leftOut.length, 'problem')]),
    ...(variables.length === 0 ? [] : [`as far as it can be said without ${variables.join(', ')}`])
  ]
  const placed = notes.map((note) => {
    const server = serverIn(note)
    const line = server === undefined ? undefined : imported.placeOf(server).line
    return `${line === undefined ? '' : `line ${line}: `}${note}`
  })
  const lines = [
    `this is ${imported.format}: ${counts.join(', ')}`,
    ...leftOut.map((line) => `  ! ${line}`),
    ...placed.map((note) => `  note: ${note}`),
    `Serve it: gatehouse serve --mcp-json ${file}. Make a configuration of it: gatehouse import ${file}`
  ]
  return {
    kind: 'mcp.json',
    problems: leftOut.map((message) => ({ message })),
    notes: placed,
    unset: variables,
    upstreams: upstreams.length,
    endpoints: [...snapshot.tenants.values()].flatMap((tenant) =>
      [...tenant.endpoints.values()].map(({ path }) => path)
    ),
    text: lines.map((line) => `${line}\n`).join(''),
    snapshot
  }
}

/** Returns the name of the server that a note is about. */
const serverIn = (note: string): string | undefined => /^Server "((?:[^"\\]|\\.)*)"/.exec(note)?.[1]

/** @throws ConfigError for everything else */
function withoutSecrets(file: string, { problems }: ConfigError): CheckedText {
  const others = problems.filter(({ variables, files }) => variables === undefined && files === undefined)
  if (others.length > 0) throw new ConfigError(file, others)
  const unset = [
    ...new Set(
      problems.flatMap(({ variables = [], files = [] }) => [...variables, ...files.map((each) => `file:${each}`)])
    )
  ].toSorted()
  const text = `${file} is valid, as far as it can be said without ${visible(unset.join(', '))}\n`
  return { kind: 'configuration', problems: [], notes: [], unset, upstreams: 0, endpoints: [], text }
}

/** What an administrator has to set at the providers of a tenant, whose names or issuers the configuration says. */
function providerSteps({ id, auth, endpoints }: Tenant, publicUrl = ''): string {
  const front = publicUrl + loginPath(id)
  const urls = {
    urls: [...endpoints.values()].map(({ path }) => publicUrl + path).join(', '),
    redirect: `${front}/callback`,
    signedOut: `${front}/session/end/success`
  }
  const listed = (steps: readonly string[]): string =>
    stepsFor(steps, urls)
      .map((step, at) => `    ${at + 1}. ${step}\n`)
      .join('')
  const named = Object.entries(Object.groupBy(auth.issuers, ({ provider = '' }) => provider))
  const blocks = named.flatMap(([name, issuers = []]) => {
    if (!isProviderName(name)) return []
    const { title, steps } = providerPresets[name]
    const all = issuers.map(({ issuer }) => issuer).join(', ')
    return `  ${id}: at ${title}, ${all} (docs/providers/${name}.md):\n${listed(steps)}`
  })
  if (auth.login === undefined) return blocks.join('')
  const { provider } = auth.login
  const name = productOf(provider.issuer)
  const title = name === 'generic' ? 'the provider of its people' : providerPresets[name].title
  const asked = [provider.scopes.join(' '), ...Object.entries(provider.parameters ?? {}).map((each) => each.join('='))]
  return [
    ...blocks,
    `  ${id}: where people sign in for its login front, at ${title}, ${provider.issuer} ` +
      `(docs/providers/${name}.md#behind-the-login-front):\n${listed(providerPresets[name].behindLogin.steps)}` +
      `    The gateway asks it for: ${asked.join(', ')}\n`
  ].join('')
}
