// What docker-compose.yml promises of Grafana, asked through its API.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../kit/until.ts'

interface Dashboard {
  readonly uid: string
  readonly panels: ReadonlyArray<{ readonly title: string; readonly targets: ReadonlyArray<{ readonly expr: string }> }>
}

const folder = join(import.meta.dirname, '..', '..', 'deploy', 'grafana')
const dashboards = readdirSync(folder).map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Dashboard)
const readyMs = 300_000
/** What a person would choose at the top of a dashboard. */
const chosen = { $tenant: 'demo', $upstream: 'tickets', $__rate_interval: '2m' }

/** @param url where it answers, after some calls of `tickets` were made */
export async function meetGrafana(url: string): Promise<void> {
  const ask = (path: string, init?: RequestInit): Promise<Response> => fetch(`${url}${path}`, init)
  const isReady = (): Promise<boolean> =>
    ask('/api/health').then(
      ({ ok }) => ok,
      () => false
    )
  await until('it is ready', isReady, readyMs)
  for (const { uid } of dashboards) assert.equal((await ask(`/api/dashboards/uid/${uid}`)).status, 200, uid)
  assert.equal((await ask('/api/dashboards/uid/another')).status, 404)
  assert.equal((await ask('/api/datasources', { method: 'POST', body: '{}' })).status, 403)

  const query = async (expression: string): Promise<number> => {
    let text = expression
    for (const [variable, value] of Object.entries(chosen)) text = text.replaceAll(variable, value)
    const path = `/api/datasources/proxy/uid/prometheus/api/v1/query?query=${encodeURIComponent(text)}`
    const { status, data, error } = (await (await ask(path)).json()) as {
      status: string
      data?: { result: readonly unknown[] }
      error?: string
    }
    assert.equal(status, 'success', `${text}: ${error}`)
    return data?.result.length ?? 0
  }
  await assert.rejects(query('sum('))
  const expressions = dashboards.flatMap(({ panels }) =>
    panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  )
  assert.ok(expressions.length > 20)
  for (const expression of expressions) await query(expression)
  // A rate takes two readings.
  for (const { uid, panels } of dashboards)
    await until(
      `${uid} has something to show first`,
      async () => (await query(panels[0]?.targets[0]?.expr ?? '')) > 0,
      readyMs
    )
}
