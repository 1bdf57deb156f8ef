// deploy/kubernetes and deploy/helm: what the API of Kubernetes accepts, and what the gateway needs. `npm run kubernetes`
// compares what kustomize and helm make of them.

import Ajv from 'ajv'
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { prometheusName } from '../../scripts/metrics-doc.ts'
import { ensurePrometheus } from '../../scripts/programs.ts'
import { compileConfig } from '../../src/config/load.ts'
import { cutMs } from '../../src/http/server.ts'
import { lastSendMs } from '../../src/observe/telemetry.ts'
import { closeMs } from '../../src/upstream/pool/pool.ts'
import { serve } from '../kit/process.ts'
import { send } from '../kit/client.ts'
import { basePath, deploy, manifestsIn, repository, typeErrors, type Manifest } from './manifests.ts'

const base = manifestsIn(basePath)
const trial = manifestsIn(join(deploy, 'kubernetes', 'try'))
const deployment = base.find(({ kind }) => kind === 'Deployment') as Manifest
const pod = deployment.spec.template.spec
const [container] = pod.containers
const config = readFileSync(join(basePath, 'gatehouse.yaml'), 'utf8')

const chart = join(deploy, 'helm', 'gatehouse')
const chartValues = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as {
  readonly config: string
  readonly terminationGracePeriodSeconds: number
}

/** Its probe of the name, as path. */
const probes: ReadonlyArray<readonly [string, string]> = ['startupProbe', 'readinessProbe', 'livenessProbe'].map(
  (name) => [name, container[name].httpGet.path]
)

t.test('a Pod that starts while the store is away waits for it, and is not restarted', async (t) => {
  t.same(Object.fromEntries(probes), {
    startupProbe: '/health/live',
    readinessProbe: '/health/ready',
    livenessProbe: '/health/live'
  })
  const template = readFileSync(join(chart, 'templates', 'deployment.yaml'), 'utf8')
  for (const [name, path] of probes) t.match(template, new RegExp(`${name}:\\s+httpGet: \\{ path: ${path},`), name)
})

t.test('the API of Kubernetes knows every member of the manifests', (t) => {
  t.same(typeErrors([...base, ...trial], t.testdir()), [])
  const broken = structuredClone(deployment)
  broken.spec.template.spec.containers[0].readynessProbe = {}
  t.match(typeErrors([broken], t.testdir()), [/readynessProbe/], 'the control')
  t.end()
})

t.test('kustomize is given every file', (t) => {
  const { resources } = parse(readFileSync(join(basePath, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  const files = readdirSync(basePath).filter((file) => !['kustomization.yaml', 'gatehouse.yaml'].includes(file))
  t.same(resources.toSorted(), files.toSorted())
  t.end()
})

t.test('the autoscaler is given a metric that the gateway has, by Prometheus and its adapter', async (t) => {
  const folder = join(deploy, 'kubernetes', 'metrics')
  const { patches } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as {
    patches: ReadonlyArray<{ readonly target: { readonly kind: string }; readonly patch: string }>
  }
  const patched = structuredClone(base)
  for (const { target, patch } of patches) {
    const manifest = patched.find(({ kind }) => kind === target.kind)
    for (const { op, path, value } of parse(patch) as Array<{ op: string; path: string; value: unknown }>) {
      t.equal(op, 'add')
      t.match(path, /\/-$/)
      const steps = path.split('/').slice(1, -1)
      // eslint-disable-next-line typescript/no-explicit-any
      const list = steps.reduce<any>((at, step) => at[step], manifest)
      list.push(value)
    }
  }
  t.same(typeErrors(patched, t.testdir()), [])
  const of = (kind: string): Manifest['spec'] => patched.find((each) => each.kind === kind)?.spec
  const { metric } = of('HorizontalPodAutoscaler').metrics[1].pods
  t.equal(metric.name, prometheusName('gatehouse.streams'))
  const adapter = parse(readFileSync(join(folder, 'adapter.yaml'), 'utf8'))
  t.match(adapter.rules.custom[0].seriesQuery, new RegExp(`^${metric.name}\\{`))

  const scrape = parse(readFileSync(join(folder, 'prometheus.yml'), 'utf8'))
  const [{ kubernetes_sd_configs: discovery, relabel_configs: relabel, ...job }] = scrape.scrape_configs
  t.same(discovery, [{ role: 'pod', namespaces: { names: ['gatehouse'] } }])
  // That of Debian knows no discovery by Kubernetes.
  const file = join(t.testdir(), 'prometheus.json')
  writeFileSync(file, JSON.stringify({ scrape_configs: [{ ...job, relabel_configs: relabel }] }))
  const checked = spawnSync(ensurePrometheus().promtool, ['check', 'config', '--syntax-only', file], {
    encoding: 'utf8'
  })
  t.equal(checked.status, 0, checked.stderr)
  const { ports } = of('Deployment').template.spec.containers[0]
  t.same(relabel[0].source_labels, [
    '__meta_kubernetes_pod_container_name',
    '__meta_kubernetes_pod_container_port_name'
  ])
  t.equal(relabel[0].regex, `${container.name};${ports[1].name}`)
  t.equal(of('NetworkPolicy').ingress[1].ports[0].port, ports[1].name)
})

t.test('Pods reach the world, and of private networks only what is named', async (t) => {
  const { egress } = (base.find(({ kind }) => kind === 'NetworkPolicy') as Manifest).spec
  const blocks = new BlockList()
  for (const { to = [] } of egress)
    for (const { ipBlock } of to)
      for (const range of ipBlock?.except ?? []) {
        const [address, prefix] = range.split('/')
        blocks.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4')
      }
  for (const address of ['169.254.169.254', '100.100.100.200', '10.96.0.1', '172.20.0.1', '192.168.1.1'])
    t.ok(blocks.check(address), address)
  for (const address of ['fd00:ec2::254', 'fe80::1']) t.ok(blocks.check(address, 'ipv6'), address)
  t.notOk(blocks.check('93.184.216.34'), 'the control')
  t.notOk(blocks.check('2606:2800:220:1::1', 'ipv6'), 'the control')
})

t.test('the gateway accepts the configuration, and its probes are answered where they ask', async (t) => {
  // What Kubernetes mounts, and a store that needs no Redis.
  const key = 'gh_key_of_a_test_0123456789'
  const folder = t.testdir({ secrets: { 'redis-password': 'secret', 'api-key': key } })
  const own = config.replaceAll('/run/secrets/gatehouse', join(folder, 'secrets'))
  const file = join(folder, 'gatehouse.yaml')
  writeFileSync(file, own)
  const bin = join(repository, 'bin', 'gatehouse.mjs')
  const checked = spawnSync(process.execPath, [bin, 'check', '--config', file], { encoding: 'utf8' })
  t.equal(checked.status, 0, checked.stderr)
  const { listen, ...rest } = parse(own.replace(/redis:\S+/, '"memory:"')) as { listen: { port: number } }
  t.equal(container.ports[0].containerPort, listen.port)
  const gateway = await serve(t, rest)
  for (const [name, path] of probes)
    t.equal((await send(`${gateway.url}${path}`, { method: 'GET' })).status, 200, `${name} ${path}`)
})

// limits.readyDelayMs is part of limits.drainMs.
const withoutFiles = config.replace(/\$\{file:[^}]+\}/g, 'q7Xw2Zr9Lk4Vb8Nt')
const { limits } = compileConfig(withoutFiles, { path: 'gatehouse.yaml', env: {} })
const stopMs = limits.drainMs + cutMs + closeMs + lastSendMs

t.test('from SIGTERM to the end the gateway takes less than 35 s, whatever its calls and child processes do', (t) => {
  t.ok(stopMs < 35_000, `${stopMs} ms`)
  t.end()
})

t.test('a Pod has the time to drain, and nothing that it does not need', (t) => {
  t.ok(pod.terminationGracePeriodSeconds * 1_000 >= container.lifecycle.preStop.sleep.seconds * 1_000 + stopMs)
  t.equal(chartValues.terminationGracePeriodSeconds, pod.terminationGracePeriodSeconds)
  t.match(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  t.match(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] }
  })
  t.equal(pod.automountServiceAccountToken, false)
  t.ok(container.resources.limits.memory)
  t.end()
})

t.test('the chart has values of the form that it wants, with the same configuration', (t) => {
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as { $schema?: string }
  delete schema.$schema
  const accepts = new Ajv.default({ strict: false }).compile(schema)
  t.ok(accepts(chartValues), JSON.stringify(accepts.errors))
  t.notOk(accepts({ ...chartValues, replica: 3 }), 'the control')
  const more = { affinity: {}, extraVolumes: [{ name: 'ca' }], extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }] }
  t.ok(accepts({ ...chartValues, ...more, tmp: { sizeLimit: '512Mi' } }), JSON.stringify(accepts.errors))
  t.notOk(accepts({ ...chartValues, tmp: { sizeLimit: 'much' } }), 'the control')
  t.equal(chartValues.config, config)
  t.end()
})
