// Which endpoint a command talks to, and with which credential.

import { UsageError, type Given, type Io, type OptionSpec } from '../commands/command.ts'
import { credentialIn, credentialOfFile } from './credential.ts'

export const credentialOptions: readonly OptionSpec[] = [
  { flags: '--key-file <file>', text: 'a file with the API key or token. Default: the value of GATEHOUSE_KEY' },
  { flags: '--token <token>', text: 'an API key or token; others on this machine can read it while the command runs' },
  { flags: '--header <header>', text: 'one more header, as "Name: value"', many: true },
  { flags: '--timeout <seconds>', text: 'for one request. Default: 60' }
]

export const endpointText = `
ENDPOINT is a URL, or a path such as /t/acme/mcp, or TENANT or TENANT/ENDPOINT, at the gateway of GATEHOUSE_URL
(default: http://127.0.0.1:8080).`

/** @throws UsageError */
export function endpointUrl(endpoint: string, env: Io['env']): string {
  if (/^https?:\/\//.test(endpoint)) {
    if (URL.canParse(endpoint)) return endpoint
    throw new UsageError(`"${endpoint}" is no URL. Write it as https://HOST/t/TENANT/mcp.`)
  }
  const base = env['GATEHOUSE_URL'] ?? 'http://127.0.0.1:8080'
  if (!URL.canParse(base)) throw new UsageError(`GATEHOUSE_URL is "${base}", which is no URL.`)
  const path = endpoint.startsWith('/') ? endpoint : `/t/${endpoint.replace(/\/default$/, '')}/mcp`
  return new URL(path, base).href
}

/** @throws UsageError */
export async function credentialOf({ options }: Given, env: Io['env']): Promise<string | undefined> {
  const { token, 'key-file': file } = options
  if (token !== undefined) return credentialIn(token, '--token', 'an API key or token')
  if (file !== undefined) return await credentialOfFile(file, '--key-file', 'an API key')
  // Empty is as good as not set: `GATEHOUSE_KEY= gatehouse …`.
  const given = env['GATEHOUSE_KEY']?.trim() ?? ''
  return given === '' ? undefined : credentialIn(given, 'GATEHOUSE_KEY', 'an API key or token')
}

/** Headers of every request. @throws UsageError */
export async function headersOf(given: Given, env: Io['env']): Promise<Record<string, string>> {
  const credential = await credentialOf(given, env)
  const lines = given.options['header']?.split('\n') ?? []
  const further = lines.map((line): [string, string] => {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new UsageError(`--header takes "Name: value", not "${line.slice(0, 20)}".`)
    return [name, value]
  })
  return {
    ...(credential !== undefined && { Authorization: `Bearer ${credential}` }),
    ...Object.fromEntries(further)
  }
}

/** In milliseconds. @throws UsageError */
export function timeoutOf({ options: { timeout } }: Given): number {
  const seconds = timeout === undefined ? 60 : Number(timeout)
  if (!(seconds > 0 && seconds <= 3_600)) throw new UsageError('--timeout takes seconds, at most 3600.')
  return seconds * 1_000
}
