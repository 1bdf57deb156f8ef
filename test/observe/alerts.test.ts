// Each alert that we ship, as Prometheus's own tool for testing rules sees it: what raises it, and what does not.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ensurePrometheus } from '../../scripts/programs.ts'

const alerts = new URL('../../deploy/prometheus/alerts.yml', import.meta.url).pathname
const calls = 'mcp_server_operation_duration_seconds_count'

/** Series by their values of each minute; `0+5x30`: it begins with 0 and grows by 5 for 30 minutes, `_x9`: none. */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly alert: string
  readonly series: Series
  /** In minutes. */
  readonly at: number
  readonly isRaised: boolean
}

const raised = (alert: string, series: Series, at = 25): Case => ({ alert, series, at, isRaised: true })
const quiet = (alert: string, series: Series, at = 25): Case => ({ alert, series, at, isRaised: false })

const available = 'gatehouse_upstream_available_ratio{gatehouse_tenant="acme",gatehouse_upstream="up"}'
const outcome = (name: string): string => `${calls}{gatehouse_tenant="acme",gatehouse_outcome="${name}"}`
const fault = `${calls}{gatehouse_outcome="internal",gen_ai_tool_name="a"}`
const [held, budget] = ['gatehouse_memory_held_bytes{instance="a"}', 'gatehouse_memory_budget_bytes{instance="a"}']
const late = 'nodejs_eventloop_delay_p99_seconds{instance="a"}'
const refused = 'gatehouse_requests_refused_total{instance="a",gatehouse_reason="no_token"}'
const store = (le: string): string => `db_client_operation_duration_seconds_bucket{instance="a",le="${le}"}`
const version = (instance: string): string => `gatehouse_snapshot_version{job="gatehouse",instance="${instance}"}`

const cases: readonly Case[] = [
  raised('GatehouseUpstreamAway', { [available]: '1 0x30' }),
  quiet('GatehouseUpstreamAway', { [available]: '1x20 0 0 0 1x30' }),
  raised('GatehouseCallsFail', { [outcome('ok')]: '0+90x30', [outcome('upstream_timeout')]: '0+10x30' }),
  quiet('GatehouseCallsFail', { [outcome('ok')]: '0+98x30', [outcome('upstream_timeout')]: '0+2x30' }),
  quiet('GatehouseCallsFail', { [outcome('ok')]: '0+50x30', [outcome('tool_error')]: '0+50x30' }),
  raised('GatehouseFault', { [fault]: '_x19 1x30' }),
  raised('GatehouseFault', { [fault]: '1x19 2x30' }),
  quiet('GatehouseFault', { [fault]: '_x9 1x30' }),
  quiet('GatehouseFault', { [outcome('rpc_error')]: '_x19 1x30' }),
  raised('GatehouseMemoryNearlyFull', { [held]: '85x30', [budget]: '100x30' }),
  quiet('GatehouseMemoryNearlyFull', { [held]: '75x30', [budget]: '100x30' }),
  raised('GatehouseEventLoopLate', { [late]: '0.3x30' }),
  quiet('GatehouseEventLoopLate', { [late]: '0.2x30' }),
  raised('GatehouseRefusesMany', { [refused]: '0+400x30' }),
  quiet('GatehouseRefusesMany', { [refused]: '0+200x30' }),
  raised('GatehouseStoreSlow', { [store('0.1')]: '0+90x30', [store('0.5')]: '0+100x30', [store('+Inf')]: '0+100x30' }),
  quiet('GatehouseStoreSlow', { [store('0.1')]: '0+100x30', [store('0.5')]: '0+100x30', [store('+Inf')]: '0+100x30' }),
  raised('GatehouseReplicasDiffer', { [version('a')]: '3x30', [version('b')]: '2x30' }),
  quiet('GatehouseReplicasDiffer', { [version('a')]: '3x30', [version('b')]: '3x30' })
]

const testOf = ({ alert, series, at, isRaised }: Case, wanted = isRaised) => ({
  interval: '1m',
  input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
  promql_expr_test: [
    {
      expr: `count by (alertname) (ALERTS{alertname="${alert}",alertstate="firing"})`,
      eval_time: `${at}m`,
      exp_samples: wanted ? [{ labels: `{alertname="${alert}"}`, value: 1 }] : []
    }
  ]
})

t.test('each alert is raised by what it is about, and by nothing less', async (t) => {
  const { promtool } = ensurePrometheus()
  const judged = (tests: readonly unknown[]) => {
    // YAML takes JSON.
    const folder = t.testdir({
      'rules.yml': JSON.stringify({ rule_files: [alerts], evaluation_interval: '1m', tests })
    })
    return spawnSync(promtool, ['test', 'rules', join(folder, 'rules.yml')], { encoding: 'utf8' })
  }
  const { status, stdout, stderr } = judged(cases.map((each) => testOf(each)))
  t.equal(status, 0, `${stdout}${stderr}`)
  for (const each of cases) t.not(judged([testOf(each, !each.isRaised)]).status, 0, `control of ${each.alert}`)
  const names = [...readFileSync(alerts, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  t.ok(names.length > 0)
  for (const isRaised of [true, false])
    t.same(new Set(cases.filter((each) => each.isRaised === isRaised).map(({ alert }) => alert)), new Set(names))
})
