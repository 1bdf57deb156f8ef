// What docker-compose.yml and the Dockerfile say, where no container engine is needed to see it. `npm run containers`
// tries what they do.

import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { parse } from 'yaml'
import { prometheusName } from '../../scripts/metrics-doc.ts'
import { compileConfig } from '../../src/config/load.ts'
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
  readonly build?: { readonly target: string }
  readonly pull_policy?: string
  readonly ulimits?: Readonly<Record<string, unknown>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly networks?: Readonly<Record<string, { readonly ipv4_address?: string } | null>>
}

const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
}

/** Of the gateways, with a digest for each secret. */
const gatewayConfig = compileConfig(
  readFileSync(join(root, 'deploy', 'compose', 'gatehouse.yaml'), 'utf8').replace(
    /\$\{file:[^}]+\}/g,
    '7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a'
  ),
  { path: 'gatehouse.yaml', env: {} }
)

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

t.test('each image of this repository is built by one service, which those that share it depend on', async (t) => {
  const own = Object.entries(services).filter(([, { image }]) => image?.startsWith('localhost/'))
  const builders = new Map<string | undefined, string>()
  for (const [name, { build, image, pull_policy }] of own) {
    t.equal(pull_policy, 'never', `${name}: no registry has it`)
    if (build === undefined) continue
    t.notOk(builders.has(image), `${name}: ${image} is built twice`)
    builders.set(image, name)
  }
  const needs = (name: string): string[] =>
    Object.keys(services[name]?.depends_on ?? {}).flatMap((other) => [other, ...needs(other)])
  for (const [name, { build, image }] of own)
    if (build === undefined) t.ok(needs(name).includes(builders.get(image) ?? 'none'), `${name} has ${image} built`)
  t.same(builders.size, 2)
  t.same(
    Object.entries(services).flatMap(([name, { build }]) => (build && !services[name]?.image ? [name] : [])),
    []
  )
})

t.test('gateways stay where nginx has found them, and believe nginx alone who calls', async (t) => {
  const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
  t.match(text, /subnet: "\$\{GATEHOUSE_NETWORK:-10\.213\.77\}\.0\/24"/)
  const addresses = new Map(
    Object.entries(services).flatMap(([name, { networks }]) => {
      const address = networks?.['inside']?.ipv4_address
      return address === undefined ? [] : [[name, address.replace(/\$\{GATEHOUSE_NETWORK:-([\d.]+)\}/, '$1')] as const]
    })
  )
  t.same([...addresses.keys()], ['proxy', 'gateway-1', 'gateway-2', 'gateway-3'])
  t.equal(new Set(addresses.values()).size, 4)
  t.match(text, /ip_range: "\$\{GATEHOUSE_NETWORK:-10\.213\.77\}\.128\/25"/)
  for (const address of addresses.values())
    t.ok(Number(address.split('.')[3]) < 128, `${address} is given to nobody who asks for none`)
  for (const [name, address] of addresses)
    t.equal(gatewayConfig.trustedProxies?.(address), name === 'proxy', `${name} ${address}`)
  t.match(readFileSync(join(root, 'deploy', 'compose', 'nginx.conf'), 'utf8'), /X-Forwarded-For \$remote_addr;/)
})

t.test('nginx takes headers as large as the gateway does, and is asked whether it listens', async (t) => {
  const [conf, docs] = ['deploy/compose/nginx.conf', 'docs/deployment.md'].map((name) =>
    readFileSync(join(root, name), 'utf8')
  )
  const directive = /^ *large_client_header_buffers 8 32k;$/m
  t.match(conf, directive)
  t.match(docs, directive)
  const probe = services['proxy']?.healthcheck?.test.at(-1) ?? ''
  const listened = [...(conf?.matchAll(/^ *listen (\d+);$/gm) ?? [])].map(([, port]) => port)
  t.same(
    [...probe.matchAll(/127\.0\.0\.1\/(\d+)/g)].map(([, port]) => port),
    listened
  )
  // The very words, at ports of this machine.
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const asked = async (other: number): Promise<number> => {
    const words = probe.replace('/8080', `/${port}`).replace('/8081', `/${other}`)
    const child = spawn('bash', ['-c', words], { stdio: 'ignore' })
    const [code] = (await once(child, 'exit')) as [number]
    return code
  }
  t.equal(await asked(port), 0)
  t.not(await asked(1), 0, 'the control: nobody listens at one of them')
})

t.test('the image is healthy while it answers; in Compose, where it is ready', async (t) => {
  t.match(readFileSync(join(root, 'deploy', 'healthcheck.mjs'), 'utf8'), /\?\? 'http:[^']+\/health\/live'/)
  t.match(services['gateway-1']?.environment, { GATEHOUSE_HEALTH_URL: /:8080\/health\/ready$/ })
})

t.test(
  'a gateway may have as many threads as its stdio servers need, and its user as many as others take',
  async (t) => {
    // A server on Node has eleven.
    t.ok((services['gateway-1']?.pids_limit ?? 0) >= gatewayConfig.limits.processes * 12)
    // Counted of all containers, and of the machine.
    for (const [name, { ulimits }] of Object.entries(services)) {
      const nproc = ulimits?.['nproc'] as { readonly hard: number } | undefined
      t.ok((nproc?.hard ?? Infinity) >= 16_384, name)
    }
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
