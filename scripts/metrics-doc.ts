// docs/metrics.md, from the table of metrics.

import { instruments, type MetricName } from '../src/observe/metrics/instruments.ts'
import { unitSuffixes } from '../src/observe/metrics/metrics-text.ts'

/** The name that Prometheus has, before `_bucket`, `_sum` and `_count` of a histogram. */
export function prometheusName(name: MetricName): string {
  const { kind, unit } = instruments[name]
  const plain = name.replaceAll('.', '_') + (unitSuffixes[unit] ?? '')
  return kind === 'counter' || kind === 'observableCounter' ? `${plain}_total` : plain
}

const kinds = {
  histogram: 'histogram',
  counter: 'counter',
  observableCounter: 'counter',
  gauge: 'gauge',
  upDownCounter: 'gauge'
} as const

export function metricsMarkdown(): string {
  const rows = (Object.keys(instruments) as MetricName[]).map((name) => {
    const { kind, unit, description, attributes } = instruments[name]
    const labels = attributes.map((attribute) => `\`${attribute}\``).join(', ')
    return `| \`${name}\` | \`${prometheusName(name)}\` | ${kinds[kind]} | ${unit} | ${labels} | ${description} |`
  })
  return `# Metrics

*Written by \`npm run docs\` from the table in src/observe/metrics/instruments.ts; do not edit.*

With \`admin\` in the configuration ([admin-api.md](admin-api.md)), \`GET /metrics\` of the admin listener has the metrics of the process that answers, in the text format of Prometheus.
The key needs the role \`metrics\`, which may do nothing else (others but \`tenant-admin\` will do, too, without \`tenants\`: metrics tell of all of them):

\`\`\`
gatehouse admin-key new --name prometheus --role metrics
\`\`\`

\`\`\`yaml
# prometheus.yml
rule_files: [alerts.yml]
scrape_configs:
  - job_name: gatehouse
    authorization: { credentials_file: /etc/prometheus/gatehouse.key }
    static_configs:
      - targets: ['gatehouse:8081']
\`\`\`

Each process answers for itself: scrape every replica at its own address, which it accepts as \`Host\`, not through a load balancer; a name goes into \`admin.hosts\`.
The workers of \`serve --workers\` answer together: each sample has a label \`worker\` with the number of the one that it is of, and one that does not answer for two seconds, or has more than 32 MiB of them, is left out.
\`docker compose --profile observability up\` has a Prometheus that does so, and a Grafana; [deployment.md](deployment.md#autoscaling) says how on Kubernetes. Names are those of the OpenTelemetry conventions for
[MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/) and for Node where these have them; \`gatehouse.*\` is ours. In Prometheus dots become
underscores, in names and labels, and the unit stands at the end of the name. The same go to a collector with \`telemetry\` ([tracing.md](tracing.md)). Nothing is counted without one of the two.

| metric | in Prometheus | kind | unit | attributes | meaning |
|---|---|---|---|---|---|
${rows.join('\n')}

- \`error.type\` is there where a call did not end well: \`tool_error\` where the result says that the tool has failed (\`isError\`), whoever made it, the JSON-RPC code where the client was sent an error (of \`mcp.client.operation.duration\`: where the upstream answered with one), else what happened, which is
  \`cancelled\` or, for a fault of the gateway, \`internal\`, and of what was sent to an upstream any reason of [errors.md](errors.md), or \`_OTHER\`.
  \`gatehouse.outcome\` says it in the words of [the log](logging.md#a-call-msg-is-call), all of which are in one table: error rates are best made of it. \`cancelled\`, \`connect_required\` and \`declined\` are what a person decides or has to do first, and no failure: the series and the usage of the admin API count them among no errors, and the console
  marks them apart. \`result_too_large\`, \`client_lacks_capability\` and \`client_no_answer\` are errors, since the caller did not get what it asked for: a limit, or another client, would change that. \`tool_error\` is the tool's own.
- No attribute has a value that a client can make up: other methods are \`_OTHER\`, names are those of tools and prompts that there are, by their upstream's own names, the first 200 characters of each. Where nothing is sent, as of an upstream that its caller has not connected, nothing is counted as sent. A tenant has series of its own for 200 names of tools and
  prompts, 200 upstreams and 50 codes of errors; further ones are \`other\`. Where one more comes, those that had no call for ten minutes make room, looked for once a minute: their series end, with their counts, and begin anew if they are called again. So a tool that is added later has its name soon, and one that is no longer listed lets its go.
  Of one metric a tenant has at most 1,000 series with names, codes and endpoints; beyond these all of them are \`other\`. All tenants together have at most 10,000: where these are taken, the tenant that has most gives up those that were used least to one that has fewer; what is beyond is counted together, with the
  label \`otel_metric_overflow\`. The log and live calls name every tool all the same.
- Exemplars: where traces are sent, each bucket of \`mcp.server.operation.duration\` has the trace of the last call in it, in the form OpenMetrics, which Prometheus asks for by itself; it keeps them with \`--enable-feature=exemplar-storage\` ([tracing.md](tracing.md#metrics)).
- \`gatehouse.limits.hit\` repeats those refusals and failed calls behind which a limit stands ([limits.md](limits.md)); \`gatehouse.upstream.silent\` is the state of the circuit breaker; misses of the lists of an upstream are its list requests in \`mcp.client.operation.duration\`.
- \`mcp.server.session.duration\` counts a session when its client ends it (DELETE; of HTTP+SSE the end of the stream), and one that is left to expire when it has (\`limits.sessionIdleMs\`), for as long as it was used. Those whose process ends first, or that reach \`limits.sessionMaxMs\`, are not counted.
- \`gatehouse.requests.refused\` has a tenant where the caller was let in.

## Alerts

[deploy/prometheus/alerts.yml](../deploy/prometheus/alerts.yml) has them. What to do:

### GatehouseUpstreamAway
A server cannot be reached. \`GET /v1/tenants/{tenant}/upstreams/{upstream}\` of the admin API says why (\`lastError\`, \`lastStderr\`) and when it is tried next. Its calls are answered with \`upstream_unavailable\`; nothing of the others suffers.

### GatehouseCallsFail
\`jq -c 'select(.msg == "call" and .outcome != "ok")'\` of the log says which calls, of whom, at which upstream, and with which error. \`upstream_timeout\`: the server is slow, or \`timeoutMs\` is too short for it. \`unavailable\`: the store does not answer.

### GatehouseFault
A defect of the gateway. The log has a line at level \`error\` with the stack: please report it.

### GatehouseMemoryNearlyFull
Callers will be refused with \`too_many\` soon: those who hold most first, by tenant and caller. Large answers that nobody reads and calls that never end are the usual cause; \`gatehouse.calls.running\` says whose. Raise \`limits.memoryBytes\` where the machine has more, or run more processes.

### GatehouseEventLoopLate
One process has more to do than one CPU can. Run more processes on the same Redis ([reliability.md](reliability.md)); \`mcp.server.operation.duration\` says whose calls they are.

### GatehouseRefusesMany
By \`gatehouse_reason\` ([errors.md](errors.md)): \`unauthenticated\` in numbers is a host with an old token, or somebody who tries; \`rate_limited\` and \`too_many\` a caller beyond its limits. The log has each with its address; those beyond the rates at level \`debug\`.

### GatehouseStoreSlow
New sessions and calls across processes wait for the store. \`db.operation.name\` says which questions are slow, and \`error.type\` whether any fail. Redis: is its machine busy, its memory full, or a \`KEYS\` or \`SAVE\` of somebody else in the way
(\`SLOWLOG GET\`)? A file: is its disk slow?

### GatehouseReplicasDiffer
A process has not taken what the admin API has made: it cannot reach the store (its log says so, and \`/health/ready\`), or is an older release that cannot read it. \`gatehouse versions\` names the newest; restart the one that is behind.
`
}
