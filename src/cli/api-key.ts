// `key new` makes an API key for a tenant, shows it once, and prints its entry for the configuration; `key list` lists
// the keys of a configuration with their permissions.

import { hash } from 'node:crypto'
import { stringify } from 'yaml'
import { newApiKey } from '../auth/keyring.ts'
import { loadConfig } from '../config/load.ts'
import type { KeyConfig } from '../config/auth/auth-config.ts'
import { orProblems, type Output } from './offline.ts'
import { UsageError, type Io } from './commands/command.ts'

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$/
const dayMs = 24 * 60 * 60 * 1000
/** How long the replaced key stays valid by default. */
const usualOverlap = '7d'

type Options = Readonly<Record<string, string | undefined>>

/**
 * The key goes to `stdout`, so that it can go to a file unseen.
 * @param now epoch milliseconds
 * @returns the exit code
 * @throws UsageError
 */
export function runNewKey(options: Options, now: number, stdout: Output, stderr: Output): number {
  const { name, scopes, endpoints, expires, replaces, overlap } = options
  if (name === undefined || !namePattern.test(name))
    throw new UsageError('key new needs --name NAME, of letters, digits, "_", ".", "@" and "-".')
  if (replaces !== undefined && !/^[0-9a-fA-F]{64}$/.test(replaces))
    throw new UsageError('--replaces is the sha256 of the key before, as the configuration has it: 64 digits.')
  if (overlap !== undefined && replaces === undefined)
    throw new UsageError('--overlap is for --replaces: how long the key before is good.')
  const key = newApiKey()
  const namesOf = (list: string | undefined): string[] => list?.split(',').filter((each) => each !== '') ?? []
  const [scopeNames, endpointNames] = [namesOf(scopes), namesOf(endpoints)]
  const entry = {
    name,
    sha256: hash('sha256', key),
    ...(scopeNames.length > 0 && { scopes: scopeNames }),
    ...(endpointNames.length > 0 && { endpoints: endpointNames }),
    ...(expires !== undefined && { expires: timeAfter('expires', expires, now) }),
    ...(replaces !== undefined && {
      previousSha256: replaces,
      previousUntil: timeAfter('overlap', overlap ?? usualOverlap, now)
    })
  }
  stdout.write(`${key}\n`)
  const what = replaces === undefined ? 'Put this under keys of the tenant' : 'Put this in place of the entry before'
  stderr.write(
    `This is the only time that the key is shown. ${what}:\n\n` +
      stringify({ auth: { keys: [entry] } }, { lineWidth: 0 })
  )
  return 0
}

/**
 * @param text `90d` or `90`
 * @returns the time so many days later, as the configuration has it
 * @throws UsageError
 */
export function timeAfter(option: string, text: string, now: number): string {
  const days = Number(/^(\d{1,5})d?$/.exec(text)?.[1] ?? 0)
  if (days === 0) throw new UsageError(`--${option} is a number of days, such as 90d, not "${text}".`)
  return new Date(now + days * dayMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** A line for each key of the configuration, never the key. @returns the exit code */
export const runListKeys = (file: string, now: number, { env, stdout }: Io): Promise<number> =>
  orProblems(file, stdout, async () => {
    const { tenants } = await loadConfig(file, { env })
    for (const { id, auth } of tenants.values())
      for (const key of auth.keys) stdout.write(`${id}  ${lineOf(key, now)}\n`)
    return 0
  })

function lineOf({ name, sha256, scopes, endpoints = [], expires, previous }: KeyConfig, now: number): string {
  const date = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
  return [
    name,
    `sha256 ${sha256.slice(0, 12)}…`,
    scopes.length === 0 ? 'no scopes' : scopes.join(' '),
    endpoints.length === 0 ? 'all endpoints' : endpoints.join(', '),
    expires === undefined ? 'no end' : `${expires <= now ? 'expired' : 'until'} ${date(expires)}`,
    ...(previous === undefined || previous.until <= now ? [] : [`the key before until ${date(previous.until)}`])
  ].join('  ')
}
