// What is wrong now, as data and in sentences: upstreams that are away, limits that refuse, configuration that is not
// in use, what is stopped, what is nearly used up. Read when somebody asks; nothing is kept for it but counts.

import { processesWithin } from '../../limits/descriptors.ts'
import { killedText } from '../../policy/kills.ts'
import { errorTable } from '../../protocol/error-table.ts'
import { tenantId } from '../../protocol/messages.ts'
import { besideLastLine } from '../../upstream/stdio/start-error.ts'
import type { Administrator } from '../access.ts'
import { documentsKnown, mayRead } from '../configuration/managed.ts'
import { administrators, maySee, type AdminServices } from '../route.ts'
import { refusedMinutes } from './refused-lately.ts'

export const problemKinds = ['store', 'saturation', 'audit', 'configuration', 'upstream', 'limit', 'kill'] as const

export interface FoundProblem {
  readonly kind: (typeof problemKinds)[number]
  /** The part of the tenant, or of the process, that has the problem, where it may have several of the kind. */
  readonly about?: string
  /** `fault`: callers are refused by it. `warning`: they will be, or some are. `notice`: somebody wanted it so. */
  readonly severity: 'fault' | 'warning' | 'notice'
  /** undefined: of the process. */
  readonly tenant?: string
  readonly upstream?: string
  /** The time since when it lasts (RFC 3339), where that is known. */
  readonly since?: string
  /** The count in the sentence. */
  readonly count?: number
  readonly sentence: string
  readonly remedy: string
}

/** Part of a limit that is in use, from which on it is told. */
const nearly = 0.8
/** The most problems of one kind in an answer. */
export const maxProblemsOfKind = 100

/** The worst first. */
const severities = ['fault', 'warning', 'notice'] as const

/** @returns at most `maxProblemsOfKind` of each kind, and how many were left out */
export async function problemsNow(administrator: Administrator, services: AdminServices) {
  const isForAll = administrator.tenants === undefined
  const found = [
    isForAll ? [...(await storeProblems(services)), ...saturation(services)] : [],
    unwrittenAudits(administrator, services),
    unusedConfigurations(administrator, services),
    awayUpstreams(administrator, services),
    noisyUpstreams(administrator, services),
    limitsHit(administrator, services),
    killsInForce(administrator, services)
  ]
  const shown = found.flatMap((each) => each.slice(0, maxProblemsOfKind))
  const all = found.reduce((sum, { length }) => sum + length, 0)
  const rank = ({ severity }: FoundProblem): number => severities.indexOf(severity)
  return { items: shown.toSorted((a, b) => rank(a) - rank(b)).map(withId), leftOut: all - shown.length }
}

const withId = ({ about, ...problem }: FoundProblem) => ({
  id: [problem.kind, problem.tenant, about].filter((part) => part !== undefined).join('/'),
  ...problem
})

async function storeProblems(services: AdminServices): Promise<FoundProblem[]> {
  const fault = await services.fault()
  if (fault === undefined) return []
  return [
    {
      kind: 'store',
      severity: 'fault',
      sentence: `This process is not ready: ${fault}.`,
      remedy: 'See the log, and docs/storage.md; load balancers leave the process out until then.'
    }
  ]
}

const unwrittenAudits = (administrator: Administrator, { audit }: AdminServices): FoundProblem[] =>
  (audit?.blockedTenants() ?? [])
    .filter((id) => maySee(administrator, id))
    .map((tenant) => ({
      kind: 'audit',
      severity: 'fault',
      tenant,
      sentence: `${tenant}: its calls are refused here: its audit records, which it requires, cannot be written.`,
      remedy: 'Those who run the gateway find the reason in its log; docs/audit.md says what has to take them.'
    }))

function saturation({ held, snapshot, descriptors }: AdminServices): FoundProblem[] {
  const { memory, connections, supervisor } = held
  const processes = Math.min(snapshot().limits.processes, processesWithin(descriptors))
  const uses: ReadonlyArray<readonly [what: string, used: number, most: number, remedy: string]> = [
    ['Memory for calls', memory.held, memory.budgetBytes, 'Raise limits.memoryBytes, or add a process.'],
    ['Connections of clients', connections.openCount, connections.max, 'Raise ulimit -n, or add a process.'],
    ['stdio processes', supervisor.count(), processes, 'Raise limits.processes, or share upstreams (isolation).']
  ]
  return uses
    .filter(([, used, most]) => used >= most * nearly)
    .map(([what, used, most, remedy]) => ({
      kind: 'saturation',
      about: what,
      severity: 'warning',
      count: used,
      sentence: `${what}: ${Math.round((used / most) * 100)} % of ${most} are in use.`,
      remedy
    }))
}

function unusedConfigurations(administrator: Administrator, { control, snapshot }: AdminServices): FoundProblem[] {
  return [...documentsKnown(control).keys()].flatMap((tenant) => {
    if (!maySee(administrator, tenant)) return []
    const [first, ...others] = control.problemsOf(tenant)
    if (first === undefined) return []
    const serves = snapshot().tenants.has(tenantId(tenant)) ? 'the one before it serves' : 'the tenant does not serve'
    const why = mayRead(administrator.role) ? `: ${first.path}: ${first.message}` : ''
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    return {
      kind: 'configuration',
      severity: 'fault',
      tenant,
      sentence: `${tenant}: its newest configuration is not in use here, ${serves}${why}${more}.`,
      remedy: correctionBy(administrator.role)
    }
  })
}

/** Nobody is told to do what their role may not. */
function correctionBy(role: Administrator['role']): string {
  if (role === 'platform-admin') return 'Correct it, or take up an earlier version (POST /v1/rollback).'
  const earlier = 'a platform-admin takes up an earlier version.'
  return role === 'tenant-admin'
    ? `Correct it, or ${earlier}`
    : `An administrator of the tenant corrects it, or ${earlier}`
}

const isAdministrator = ({ role }: Administrator): boolean => administrators.some((each) => each === role)

function awayUpstreams(administrator: Administrator, { snapshot, pool, series, wall }: AdminServices): FoundProblem[] {
  const definitions = [...snapshot().tenants.values()]
    .filter(({ id }) => maySee(administrator, id))
    .flatMap(({ upstreams }) => [...upstreams.values()])
  const isAsked = isAdministrator(administrator)
  const states = pool.statesOf(definitions)
  return definitions.flatMap((definition, at) => {
    if (states[at]?.isAway !== true) return []
    const { tenant, name } = definition
    const { awayMs = 0, retriedInMs, lastError, lastLine } = pool.stateOf(definition)
    const since = wall.now() - awayMs
    const count = series.failuresSince(tenant, name, since)
    const next = retriedInMs === undefined ? '' : `; it is tried again in ${spanText(retriedInMs)}`
    const error = lastLine === undefined || lastError === undefined ? lastError : besideLastLine(lastError)
    const said = isAsked ? [saidText('last error', error), saidText('last stderr line', lastLine)] : []
    return {
      kind: 'upstream',
      about: `${name}/away`,
      severity: 'fault',
      tenant,
      upstream: name,
      since: new Date(since).toISOString(),
      count,
      sentence:
        `${name} of ${tenant}: down for ${spanText(awayMs)}, ${count} ${count === 1 ? 'call' : 'calls'} failed` +
        `${said.join('')}${next}.`,
      remedy: isAsked
        ? `Look at its server, then POST /v1/tenants/${tenant}/upstreams/${name}/reconnect.`
        : 'Whoever runs its server looks at it; an administrator of the tenant can have it reconnected.'
    }
  })
}

/** Servers over stdio that write something else among their messages, which may be an answer that is lost. */
const noisyUpstreams = (administrator: Administrator, { snapshot, held }: AdminServices): FoundProblem[] =>
  [...snapshot().tenants.values()]
    .filter(({ id }) => maySee(administrator, id))
    .flatMap(({ upstreams }) => [...upstreams.values()])
    .flatMap((definition) => {
      const count = definition.type === 'stdio' ? held.supervisor.strayLines.of(definition) : 0
      if (count === 0) return []
      const { tenant, name } = definition
      const lines = count === 1 ? '1 line that is no message' : `${count} lines that are no messages`
      return {
        kind: 'upstream',
        about: `${name}/output`,
        severity: 'warning',
        tenant,
        upstream: name,
        count,
        sentence: `${name} of ${tenant} writes to its standard output what does not belong there: ${lines} so far.`,
        remedy: 'Have it write its log to standard error; an answer among these lines is lost, and its call fails.'
      }
    })

const saidText = (what: string, text: string | undefined): string =>
  text === undefined || text === '' ? '' : `; ${what}: ${text.replace(/\.$/, '')}`

const limitsHit = (administrator: Administrator, { refusedLately }: AdminServices): FoundProblem[] =>
  refusedLately
    .read()
    .filter(({ tenant }) =>
      tenant === undefined ? administrator.tenants === undefined : maySee(administrator, tenant)
    )
    .sort((a, b) => b.count - a.count)
    .map(({ tenant, code, count }) => ({
      kind: 'limit',
      about: code,
      severity: 'warning',
      ...(tenant !== undefined && { tenant }),
      count,
      sentence:
        `${tenant ?? 'Callers who were not let in'}: ${count} ${count === 1 ? 'request was' : 'requests were'} ` +
        `refused with ${code} in the last ${refusedMinutes} minutes.`,
      remedy: errorTable[code].meaning
    }))

function killsInForce(administrator: Administrator, { snapshot, control }: AdminServices): FoundProblem[] {
  const tenants = new Set([...snapshot().tenants.keys(), ...documentsKnown(control).keys()].map(String))
  const who = isAdministrator(administrator) ? 'Take' : 'Administrators take'
  return [...tenants].flatMap((tenant) =>
    maySee(administrator, tenant)
      ? (control.killsOf(tenant) ?? []).map((kill) => ({
          kind: 'kill' as const,
          about: killedText(kill),
          severity: 'notice' as const,
          tenant,
          since: kill.at,
          sentence: `${tenant}: ${killedText(kill)} is stopped by ${kill.by}.`,
          remedy: `${who} the kill switch back where its reason is gone.`
        }))
      : []
  )
}

/** Such as `4 min`. */
function spanText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
