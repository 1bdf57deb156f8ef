// `tail`: requests in a log file of the gateway, or as they end at every process, chosen by who, what, when and how
// they ended.

import { watch } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { basename, dirname } from 'node:path'
import { errorTable } from '../../protocol/error-table.ts'
import { isObject } from '../../protocol/messages.ts'
import { didYouMean } from '../../config/problems.ts'
import { loggedSessionChars } from '../../observe/call-text.ts'
import { textLine, visible } from '../../observe/text-log.ts'
import { openAdminApi } from '../admin/admin-client.ts'
import { orRefusal } from '../admin/run-admin.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import type { ownOutcomes } from '../../observe/outcomes.ts'
import { harmlessJson } from '../printed.ts'
import { timesOf } from './tail-times.ts'

type Line = Readonly<Record<string, unknown>>

/** The meanings of outcomes that are no errors of the gateway. */
const otherOutcomes: Readonly<Record<(typeof ownOutcomes)[number], string>> = {
  ok: 'The upstream answered with a result.',
  tool_error: 'The tool answered that it has failed (isError); what it said went to the client.',
  denied: 'A rule or a kill switch (rule) hides it from its caller, who was told what is told of an unknown name.',
  rpc_error: 'The upstream answered with a JSON-RPC error.'
}

/** The messages of log lines about requests. */
const told: ReadonlySet<string> = new Set(['call', 'refused', 'request'])

/** Fields that are compared as they are. */
const exact = ['tenant', 'endpoint', 'upstream', 'prompt', 'resource', 'method', 'outcome'] as const

/** @returns the exit code: 1 where nothing was found. @throws UsageError */
export async function runTail(given: Given, io: Io): Promise<number> {
  const [file = 'live'] = given.operands
  const { stdout, stderr } = io
  const fits = filterOf(given)
  const { json, follow, request } = given.options
  const hasColours = stdout.isTTY && !io.env['NO_COLOR']
  let found = 0
  const seen = createSeen(given)
  const take = (text: string): void => {
    const line = seen.line(text)
    if (line === undefined || !fits(line)) return
    found++
    if (json !== undefined) stdout.write(`${harmlessJson(text)}\n`)
    else if (request !== undefined) stdout.write(wholeLine(line))
    else stdout.write(textLine(text, hasColours))
  }
  if (given.operands.length === 0) return await orRefusal(io, () => listenToCalls(given, io, take))
  if (file === '-') {
    for await (const text of createInterface({ input: io.stdin ?? process.stdin })) take(text)
  } else {
    const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
      const why = error.code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${error.code})`
      throw new UsageError(`${file}: ${why}. tail needs the file that has the log of the gateway.`)
    })
    await readOn(handle, file, take, follow !== undefined)
  }
  if (found === 0) stderr.write(`${file}: ${visible(seen.whyNone())}\n`)
  return found === 0 ? 1 : 0
}

/** Until the process is told to end. @returns the exit code */
async function listenToCalls(given: Given, { env, stderr }: Io, take: (line: string) => void): Promise<number> {
  const api = await openAdminApi(given, env)
  const { tenant } = given.options
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const path = tenant === undefined ? '/v1/calls' : `/v1/tenants/${encodeURIComponent(tenant)}/calls`
  await api.listen(path, stop.signal, (event, data) => {
    if (event === 'call') {
      const line = JSON.parse(data) as Line
      take(JSON.stringify({ ...line, level: 30, time: Date.parse(String(line['time'])), msg: 'call' }))
    } else stderr.write(`${event}: ${visible(data)}\n`)
  })
  if (stop.signal.aborted) return 0
  stderr.write('gatehouse: the stream of calls has ended: the gateway stops, or something before it closed it.\n')
  return 1
}

/** Reads what is there, and with `goesOn` what is added, until the process is told to end. */
async function readOn(handle: FileHandle, file: string, take: (line: string) => void, goesOn: boolean): Promise<void> {
  const decoder = new TextDecoder()
  const buffer = Buffer.alloc(65_536)
  let rest = ''
  async function readAll(): Promise<void> {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null)
      if (bytesRead === 0) return
      const lines = (rest + decoder.decode(buffer.subarray(0, bytesRead), { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      lines.forEach(take)
    }
  }
  if (!goesOn) {
    await readAll()
    if (rest !== '') take(rest)
    return await handle.close()
  }
  // Set up before the first read, so that no addition and no signal during it is missed.
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  let reading: Promise<void> = Promise.resolve()
  const readMore = (): void => {
    reading = reading.then(readAll)
  }
  const watcher = watch(dirname(file), (_event, name) => {
    if (name === basename(file)) readMore()
  })
  readMore()
  await promise
  watcher.close()
  await reading
  await handle.close()
}

/** Distinct values of a field that are compared with a misspelt one. */
const maxSeen = 1_000

/** Collects the values that were read, to suggest one if nothing matches. */
function createSeen({ options }: Given) {
  const names = (['user', 'tenant', 'endpoint', 'upstream', 'tool', 'prompt', 'method'] as const).filter(
    (name) => options[name] !== undefined
  )
  const values = new Map(names.map((name) => [name, new Set<string>()]))
  let lines = 0
  let ofJson = 0

  function note(line: Line): void {
    for (const [name, known] of values)
      for (const field of name === 'user' ? ['user', 'apiKey', 'client'] : [name])
        if (typeof line[field] === 'string' && known.size < maxSeen) known.add(line[field])
  }

  return {
    /** @returns undefined for what is no request */
    line(text: string): Line | undefined {
      if (text.trim() !== '') lines++
      try {
        const value: unknown = JSON.parse(text)
        if (!isObject(value)) return undefined
        ofJson++
        if (!told.has(String(value['msg']))) return undefined
        note(value)
        return value
      } catch {
        return undefined // A line of something else, such as the stack of another program.
      }
    },
    whyNone(): string {
      if (lines > 0 && ofJson === 0)
        return 'no line of it is JSON. tail reads the log in JSON: set GATEHOUSE_LOG_FORMAT=json for the gateway.'
      const unknown = [...values].flatMap(([name, known]) => {
        const wanted = String(options[name])
        if (known.has(wanted)) return []
        return [`Nothing in it has --${name} ${wanted}.`, didYouMean(wanted, known) ?? '']
      })
      return ['no request fits.', ...unknown].filter(Boolean).join(' ')
    }
  }
}

/** @throws UsageError */
function checkOutcome(outcome: string | undefined): void {
  const known = [...Object.keys(otherOutcomes), ...Object.keys(errorTable)]
  if (outcome === undefined || known.includes(outcome)) return
  const longer = known.filter((each) => each.endsWith(`_${outcome}`)).map((each) => `"${each}"`)
  const meant = longer.length === 0 ? didYouMean(outcome, known) : `Did you mean ${longer.join(' or ')}?`
  throw new UsageError(`No request ends with "${outcome}". ${meant ?? 'See docs/logging.md.'}`)
}

/** Compares with the upstream's name of the tool, or the public one: the log has no prefix and separator. */
function isTool(wanted: string, { upstream, tool }: Line): boolean {
  if (wanted === tool) return true
  if (typeof upstream !== 'string' || typeof tool !== 'string') return false
  const between = wanted.slice(upstream.length, -tool.length)
  return wanted === upstream + between + tool && /^[_./:-]{1,4}$/.test(between)
}

/** @throws UsageError */
function filterOf({ options }: Given): (line: Line) => boolean {
  const { user, failed, request, slower, since, until, address, tool, session } = options
  checkOutcome(options['outcome'])
  const [from, to] = timesOf(since, until)
  const slowMs = slower === undefined ? undefined : Number(slower)
  if (slowMs !== undefined && !(slowMs >= 0)) throw new UsageError('--slower takes milliseconds.')
  return (line) => {
    const { time, outcome, ms, msg } = line
    if (request !== undefined && line['requestId'] !== request) return false
    if (user !== undefined && line['user'] !== user && line['apiKey'] !== user && line['client'] !== user) return false
    if (tool !== undefined && !isTool(tool, line)) return false
    if (session !== undefined && line['session'] !== session.slice(0, loggedSessionChars)) return false
    if (address !== undefined && line['address'] !== address) return false
    if (exact.some((name) => options[name] !== undefined && line[name] !== options[name])) return false
    if (failed !== undefined && (outcome === 'ok' || msg === 'request')) return false
    if (slowMs !== undefined && !(Number(ms) >= slowMs)) return false
    return Number(time) >= (from ?? -Infinity) && Number(time) <= (to ?? Infinity)
  }
}

const kinds = {
  call: 'a call',
  refused: 'a request that was refused before it became a call',
  request: 'a request that is no call'
}

/** Everything that the log knows of one request, and what its outcome means. */
function wholeLine(line: Line): string {
  const { time, level: _level, msg, ...fields } = line
  const outcome = String(fields['outcome'] ?? fields['reason'])
  const meanings: Readonly<Record<string, string | undefined>> = otherOutcomes
  const row = Object.hasOwn(errorTable, outcome) ? errorTable[outcome as keyof typeof errorTable] : undefined
  const meaning = row?.meaning ?? meanings[outcome]
  const shown = Object.entries(fields).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value)
  ])
  const all: Array<[string, string]> = [
    ['what', kinds[msg as keyof typeof kinds]],
    ['time', new Date(Number(time)).toISOString()],
    ...shown,
    ...(meaning === undefined ? [] : [['meaning', meaning] as [string, string]])
  ]
  const width = Math.max(...all.map(([name]) => name.length))
  return all.map(([name, value]) => `${name.padEnd(width)}  ${visible(value)}\n`).join('') + '\n'
}
