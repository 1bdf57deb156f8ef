// What the tests of the audit log share: records, reports, and the log alone, without a gateway.

import { readFile } from 'node:fs/promises'
import pino from 'pino'
import { createAudit } from '../../src/audit/audit.ts'
import { readAudit } from '../../src/audit/segments.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { compileConfig } from '../../src/config/load.ts'
import { createLiveEvents } from '../../src/observe/live.ts'
import { auditIndexKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { handClock } from '../kit/connector.ts'
import { configOf } from '../kit/gateway.ts'
import type { Teardown } from '../kit/until.ts'

export interface AuditRecord extends Record<string, unknown> {
  readonly chain: string
  readonly kind: string
}

const silent = pino({ level: 'silent' })
export const parse = (text: string): AuditRecord[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditRecord)

/** The records in the file by now: none while it is not there, and no line whose end is not written yet. */
export async function recordsIn(file: string): Promise<AuditRecord[]> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return parse(text.slice(0, text.lastIndexOf('\n') + 1))
}

/** @param now the time of day of whoever verifies */
export async function report(text: string, now: number) {
  const lines = (async function* all() {
    yield* text.split('\n')
  })()
  return await verifyAudit(lines, undefined, now)
}

interface AloneOptions {
  readonly required?: boolean
  readonly days?: number
  readonly megabytes?: number
  readonly file?: string
}

/** The audit log alone, over a store whose additions wait for `gate`, and with clocks that a test moves. */
export async function auditAlone(
  t: Teardown,
  { required = false, days = 90, megabytes = 1_024, file }: AloneOptions = {}
) {
  const clock = handClock(Date.parse('2026-11-23T06:00:00Z'))
  const store = await createSqliteStore({ path: ':memory:', clock, log: silent })
  t.teardown(() => store.close())
  const held: { gate: Promise<void> } = { gate: Promise.resolve() }
  const slow: Store = {
    ...store,
    append: async (...given) => {
      await held.gate
      await store.append(...given)
    }
  }
  const config = {
    store: true,
    retentionDays: days,
    megabytesPerTenant: megabytes,
    ...(file !== undefined && { file })
  }
  const given = JSON.stringify(configOf({ upstreams: {}, audit: { required }, top: { audit: {} } }))
  const snapshot = compileConfig(given, { path: 'x', env: {} })
  const tenant = [...snapshot.tenants.values()][0]
  if (tenant === undefined) throw new Error('there is no tenant')
  let runs = 0
  const errors: string[] = []
  async function start() {
    const audit = createAudit({
      config,
      store: slow,
      snapshot: () => snapshot,
      run: `run${++runs}`,
      clock,
      wall: clock,
      live: createLiveEvents(),
      log: pino({ level: 'error', base: null }, { write: (line: string) => errors.push(line) })
    })
    await audit.loaded
    return audit
  }
  return {
    clock,
    store,
    held,
    errors,
    start,
    begin: (audit: Awaited<ReturnType<typeof start>>) =>
      audit.begin({
        request: { method: 'tools/call', params: { name: 'x'.repeat(500), arguments: {} } },
        tenant,
        endpoint: { name: 'default' },
        principal: { kind: 'key', issuer: '', subject: 'ada', clientId: 'ada' }
      }),
    segments: async () => (await store.entries(auditIndexKey('acme'))).length,
    async text() {
      let text = ''
      for await (const lines of readAudit(store, 'acme')) text += lines
      return text
    }
  }
}

/** How a call ended. */
export const ok = { outcome: 'ok', ms: 1, rule: undefined } as const
