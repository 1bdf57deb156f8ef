// `audit verify`: whether an audit log is whole, by itself and by how far the gateway knows its runs.

import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { isChainHead } from '../../audit/chain.ts'
import { auditPublicKey } from '../../audit/keys.ts'
import type { KeptHead } from '../../audit/segments.ts'
import { verifyAudit, type AuditReport } from '../../audit/verify.ts'
import { countOf } from '../../config/problems.ts'
import { wallClock } from '../../time/clock.ts'
import { AdminRefusal, openAdminApi, type AdminApi } from '../admin/admin-client.ts'
import { orRefusal } from '../admin/run-admin.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import type { Output } from '../offline.ts'
import { jsonText } from '../printed.ts'

/** Of a line that is verified, in characters: many times what a record has. */
const maxLineChars = 4 * 1024 * 1024
const dayMs = 24 * 60 * 60 * 1000

interface VerifyIo extends Pick<Io, 'env' | 'stderr'> {
  readonly stdin?: Readable
  readonly stdout: Output
}

/**
 * Says whether an exported audit log is whole.
 * @param given the path of its file, `-`: standard input; and options. `key`: the public key, or the path of a file
 * with one or, after the key was changed, several, each in a line; undefined: those which the records name.
 * `retention-days`: of how many days files are kept, where records say more. `tenant`: the admin API is asked how far
 * the gateway knows its runs; `head`: the path of a file that says it. `json`: the report as data
 * @throws UsageError
 * @returns the exit code: 1 where something is wrong
 */
export async function runAuditVerify(given: Given, io: VerifyIo): Promise<number> {
  const { operands, options } = given
  const { stdin = process.stdin, stdout } = io
  const [file = ''] = operands
  const { key, head, tenant, json, 'retention-days': days } = options
  const input = file === '-' ? stdin : createReadStream(file)
  if (days !== undefined && !/^\d{1,5}$/.test(days)) throw new UsageError('--retention-days must be a number of days.')
  const trusted = key === undefined ? undefined : await publicKeysOf(key)
  return await orRefusal(io, async () => {
    const heads = [
      ...(head === undefined ? [] : await headsIn(head)),
      ...(tenant === undefined ? [] : await headsKnown(tenant, await openAdminApi(given, io.env)))
    ]
    const extent = { heads, ...(days !== undefined && { retentionMs: Number(days) * dayMs }) }
    try {
      const report = await verifyAudit(linesOf(input), trusted, wallClock.now(), extent)
      const isTrusted = trusted !== undefined
      stdout.write(json === undefined ? textOfReport(report, isTrusted) : jsonText({ ...report, isTrusted }))
      return report.problems.length === 0 ? 0 : 1
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
      throw new UsageError(`${file} cannot be read. Give the path of an audit log, or - for standard input.`)
    }
  })
}

const withoutHeads = 'has no heads. --head takes a file with what "gatehouse audit heads TENANT --json" printed'

/** What `audit heads --json` printed; or heads, each in a line. @throws UsageError */
async function headsIn(file: string): Promise<KeptHead[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => error)
  if (text instanceof Error) throw new UsageError(`${file} ${withoutHeads} (${text.code}).`)
  const values = [jsonOf(text) ?? text.trim().split('\n').map(jsonOf)].flat()
  const heads = asHeads(values)
  if (heads.length === 0 || heads.length < values.length) throw new UsageError(`${file} ${withoutHeads}.`)
  return heads
}

const asHeads = (values: readonly unknown[]): KeptHead[] =>
  values.filter(isChainHead).map((head) => ({ ...head, madeRoom: 'madeRoom' in head && head.madeRoom === true }))

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Of a tenant, or of a trail that no tenant has now. @throws AdminRefusal */
async function headsKnown(tenant: string, api: AdminApi): Promise<KeptHead[]> {
  const id = encodeURIComponent(tenant)
  const found = await api.all(`/v1/tenants/${id}/audit/heads`).catch(async (error: unknown) => {
    if (error instanceof AdminRefusal && error.status === 404) return await api.all(`/v1/audit/trails/${id}/heads`)
    throw error
  })
  return asHeads(found)
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
