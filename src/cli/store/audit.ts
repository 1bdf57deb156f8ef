// The commands about the audit log: `audit export` and `audit verify`.

import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { gatewayItself } from '../../audit/audit.ts'
import { auditPublicKey } from '../../audit/keys.ts'
import { readAudit } from '../../audit/segments.ts'
import { verifyAudit, type AuditReport } from '../../audit/verify.ts'
import { loadConfig } from '../../config/load.ts'
import { countOf } from '../../config/problems.ts'
import { createLog } from '../../observe/log.ts'
import { tenantId } from '../../protocol/messages.ts'
import { tenantsKey } from '../../store/keys.ts'
import { openStore } from '../../store/open-store.ts'
import { wallClock } from '../../time/clock.ts'
import { UsageError } from '../commands/command.ts'
import { orProblems, type Output } from '../offline.ts'
import { jsonText } from '../printed.ts'

/** Of a line that is verified, in characters: many times what a record has. */
const maxLineChars = 4 * 1024 * 1024
const dayMs = 24 * 60 * 60 * 1000

/** Writes the records of the store, one in a line. @throws UsageError. @returns the exit code */
export async function runAuditExport(
  { config, tenant }: Readonly<Record<string, string | undefined>>,
  { env, stdout }: { readonly env: NodeJS.ProcessEnv; readonly stdout: NodeJS.WritableStream }
): Promise<number> {
  if (config === undefined) throw new UsageError('audit export needs --config FILE.')
  return await orProblems(config, stdout, async () => {
    const snapshot = await loadConfig(config, { env })
    const tenants = [...snapshot.tenants.keys()]
    const store = await openStore(snapshot.store, wallClock, createLog('error', 'text'))
    let isEmpty = true
    try {
      await store.ping()
      // Of tenants that the admin API has made, and of removed ones, too: their records stay until their time is over.
      const known = tenant === undefined ? [...tenants, ...(await store.entries(tenantsKey)), gatewayItself] : [tenant]
      for (const id of new Set(known))
        for await (const lines of readAudit(store, id)) {
          isEmpty = false
          if (!stdout.write(lines)) await new Promise((resolve) => stdout.once('drain', resolve))
        }
    } finally {
      await store.close()
    }
    if (isEmpty && tenant !== undefined && !snapshot.tenants.has(tenantId(tenant)))
      throw new UsageError(`There is no tenant "${tenant}", and no record of one. Known: ${tenants.join(', ')}.`)
    return 0
  })
}

/**
 * Says whether an exported audit log is whole.
 * @param file its path; `-`: standard input
 * @param options `key`: the public key, or the path of a file with one or, after the key was changed, several, each in
 * a line; undefined: those which the records name. `retention-days`: of how many days files are kept, where records say
 * more. `json`: the report as data
 * @throws UsageError
 * @returns the exit code: 1 where something is wrong
 */
export async function runAuditVerify(
  file: string,
  { key, json, 'retention-days': days }: Readonly<Record<string, string | undefined>>,
  { stdin, stdout }: { readonly stdin: Readable; readonly stdout: Output }
): Promise<number> {
  const input = file === '-' ? stdin : createReadStream(file)
  if (days !== undefined && !/^\d{1,5}$/.test(days)) throw new UsageError('--retention-days must be a number of days.')
  const extent = days === undefined ? {} : { retentionMs: Number(days) * dayMs }
  const trusted = key === undefined ? undefined : await publicKeysOf(key)
  try {
    const report = await verifyAudit(linesOf(input), trusted, wallClock.now(), extent)
    const isTrusted = trusted !== undefined
    stdout.write(json === undefined ? textOfReport(report, isTrusted) : jsonText({ ...report, isTrusted }))
    return report.problems.length === 0 ? 0 : 1
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    throw new UsageError(`${file} cannot be read. Give the path of an audit log, or - for standard input.`)
  }
}

/**
 * Records are separated by a line feed and nothing else (by CR LF after a transfer): what other readers take for a line
 * break too may stand in one. A longer line than any record is given as its beginning.
 */
async function* linesOf(input: Readable): AsyncGenerator<string, void, undefined> {
  let rest = ''
  for await (const chunk of input.setEncoding('utf8') as AsyncIterable<string>) {
    const [first = '', ...others] = chunk.split('\n')
    rest += first.slice(0, maxLineChars - rest.length)
    for (const next of others) {
      yield rest.replace(/\r$/, '')
      rest = next.slice(0, maxLineChars)
    }
  }
  yield rest
}

async function publicKeysOf(key: string): Promise<ReturnType<typeof auditPublicKey>[]> {
  const text = await readFile(key, 'utf8').catch(() => key)
  try {
    return text.trim().split(/\s+/).map(auditPublicKey)
  } catch {
    throw new UsageError('--key must be the public key as the gateway logs it at its start, or a file with it.')
  }
}

function textOfReport(report: AuditReport, isTrusted: boolean): string {
  const { records, chains, signatures, keys, problems, notes } = report
  const counted = `${countOf(records, 'record')} in ${countOf(chains, 'chain')}, ${countOf(signatures, 'signature')}`
  const lines = [...problems.map((problem) => `wrong: ${problem}`), ...notes.map((note) => `note: ${note}`)]
  if (!isTrusted && keys.length > 0)
    lines.push(`note: signed by ${keys.join(' and ')}. Compare with what the gateway logs, or give it as --key`)
  const verdict = problems.length === 0 ? 'nothing is missing or altered' : countOf(problems.length, 'problem')
  return [...lines, `${counted}: ${verdict}`, ''].join('\n')
}
