// What docker-compose.yml and the Dockerfile say, where no container engine is needed to see it. `npm run containers`
// tries what they do.

import t from 'tap'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { prometheusName } from '../../scripts/metrics-doc.ts'
import { instruments, type MetricName } from '../../src/observe/metrics/instruments.ts'

const root = join(import.meta.dirname, '..', '..')

interface Service {
  readonly image?: string
  readonly profiles?: readonly string[]
  readonly ports?: readonly string[]
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly mem_limit?: string
  readonly pids_limit?: number
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly environment?: Readonly<Record<string, string>>
}

const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
}

t.test(
  'docker-compose.yml publishes the proxy alone, on loopback, and of a profile what a browser has to reach',
  async (t) => {
    const published = Object.entries(services).flatMap(([name, { ports = [], profiles }]) =>
      ports.map((port) => ({ name, port, profiles }))
    )
    t.same(
      published.map(({ name, profiles }) => [name, profiles]),
      [
        ['proxy', undefined],
        ['proxy', undefined],
        ['login-gateway', ['idp']],
        ['dex', ['idp']],
        ['keycloak', ['idp']],
        ['grafana', ['observability']]
      ]
    )
    for (const { port } of published) t.match(port, /^127\.0\.0\.1:/)
  }
)

t.test('Prometheus is told of every gateway, and the gateways of its key, which may do nothing else', async (t) => {
  const read = (...path: readonly string[]): any => parse(readFileSync(join(root, 'deploy', ...path), 'utf8')) // eslint-disable-line typescript/no-explicit-any
  const gateways = Object.keys(services).filter((name) => name.startsWith('gateway-'))
  const { scrape_configs: jobs } = read('compose', 'prometheus.yml')
  const { admin } = read('compose', 'gatehouse.yaml')
  t.same(
    jobs[0].static_configs[0].targets,
    gateways.map((name) => `${name}:${admin.listen.port}`)
  )
  t.same(admin.hosts, gateways)
  t.match(admin.keys, [{ role: 'metrics' }])
  t.equal(admin.keys.length, 1)
})

t.test('gateways send their traces to where the collector listens, and the stand-in is of its version', async (t) => {
  const read = (name: string): any => parse(readFileSync(join(root, 'deploy', 'compose', name), 'utf8')) // eslint-disable-line typescript/no-explicit-any
  const { receivers, service } = read('collector.yaml')
  const [, port] = /^0\.0\.0\.0:(\d+)$/.exec(receivers.otlp.protocols.http.endpoint) ?? []
  t.equal(read('gatehouse.yaml').telemetry.otlp.endpoint, `http://collector:${port}`)
  t.same(Object.keys(service.pipelines), ['traces', 'metrics', 'logs'])
  const [own] = service.telemetry.metrics.readers
  t.same(read('prometheus.yml').scrape_configs[1].static_configs[0].targets, [
    `collector:${own.pull.exporter.prometheus.port}`
  ])
  const modules = readFileSync(join(root, 'scripts', 'stand-ins', 'collector', 'go.mod'), 'utf8')
  t.equal(services['collector']?.image, `docker.io/otel/opentelemetry-collector:${/otelcol v(\S+)/.exec(modules)?.[1]}`)
})

t.test('each dashboard asks the data source that Grafana is given, for metrics that there are', async (t) => {
  const provisioned = join(root, 'deploy', 'compose', 'grafana', 'datasources', 'prometheus.yaml')
  const { datasources } = parse(readFileSync(provisioned, 'utf8')) as { datasources: ReadonlyArray<{ uid: string }> }
  const folder = join(root, 'deploy', 'grafana')
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  t.ok(files.length > 0)
  const known = new Set(
    (Object.keys(instruments) as MetricName[]).flatMap((name) => [
      ...['', '_bucket', '_count', '_sum'].map((end) => `${prometheusName(name)}${end}`),
      ...instruments[name].attributes.map((attribute) => attribute.replaceAll('.', '_'))
    ])
  )
  for (const file of files) {
    const text = readFileSync(join(folder, file), 'utf8')
    const uids = [...text.matchAll(/"type": ?"prometheus",\s*"uid": ?"([^"$]+)"/g)].map(([, uid]) => uid)
    t.same(
      uids.filter((uid) => uid !== datasources[0]?.uid),
      [],
      file
    )
    const named = new Set(text.match(/\b(?:gatehouse|gen_ai|mcp|nodejs|v8js|process)_[a-z0-9_]+/g))
    t.ok(named.size > 0, file)
    t.same(
      [...named].filter((name) => !known.has(name)),
      [],
      file
    )
  }
})

t.test(
  'every service has limits, a read-only file system and no capability, and waits for what it needs',
  async (t) => {
    t.ok(Object.keys(services).length >= 7)
    for (const [name, { read_only, cap_drop, mem_limit, pids_limit, depends_on = {} }] of Object.entries(services)) {
      t.match(
        { read_only, cap_drop, mem_limit, pids_limit },
        // Keycloak writes into its own folder at its start.
        { read_only: name !== 'keycloak', cap_drop: ['ALL'], mem_limit: /m$/, pids_limit: Number },
        name
      )
      for (const [other, { condition }] of Object.entries(depends_on))
        t.equal(
          condition,
          other === 'secrets' ? 'service_completed_successfully' : 'service_healthy',
          `${name}: ${other}`
        )
    }
  }
)

t.test('no secret stands in docker-compose.yml', async (t) => {
  for (const [name, { environment = {} }] of Object.entries(services))
    t.same(
      Object.keys(environment).filter((key) => /password|key|token/i.test(key)),
      [],
      name
    )
})

t.test(
  'every image of the Dockerfile that runs has a user without rights, and starts below an init without a shell',
  async (t) => {
    const stages = readFileSync(join(root, 'Dockerfile'), 'utf8')
      .split(/^FROM /m)
      .slice(1)
    const running = stages.filter((stage) => stage.includes('ENTRYPOINT'))
    t.equal(running.length, 3)
    for (const stage of running) {
      const [name = ''] = stage.split('\n')
      t.match(stage, /^USER 1000:1000$/m, name)
      t.match(stage, /^ENTRYPOINT \["\/usr\/bin\/tini", "--", "node", /m, name)
      t.notMatch(stage, /^(?:CMD|ENTRYPOINT|HEALTHCHECK)(?!.*\[).*$/m, name)
    }
    t.match(running.at(-1), /^base AS gateway\n/, 'the gateway is what is built by default')
  }
)
