// deploy/kubernetes and deploy/helm: what the API of Kubernetes accepts, and what the gateway needs. `npm run kubernetes`
// compares what kustomize and helm make of them.

import Ajv from 'ajv'
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { serve } from '../kit/process.ts'
import { send } from '../kit/client.ts'
import { basePath, deploy, manifestsIn, repository, typeErrors, type Manifest } from './manifests.ts'

const base = manifestsIn(basePath)
const trial = manifestsIn(join(deploy, 'kubernetes', 'try'))
const deployment = base.find(({ kind }) => kind === 'Deployment') as Manifest
const pod = deployment.spec.template.spec
const [container] = pod.containers
const config = readFileSync(join(basePath, 'gatehouse.yaml'), 'utf8')

/** Its probe of the name, as path. */
const probes: ReadonlyArray<readonly [string, string]> = ['startupProbe', 'readinessProbe', 'livenessProbe'].map(
  (name) => [name, container[name].httpGet.path]
)

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

t.test('a Pod has the time to drain, and nothing that it does not need', (t) => {
  // limits.drainMs, six seconds for child processes.
  t.ok(pod.terminationGracePeriodSeconds >= container.lifecycle.preStop.sleep.seconds + 30 + 6)
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
  const chart = join(deploy, 'helm', 'gatehouse')
  const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as { config: string }
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as { $schema?: string }
  delete schema.$schema
  const accepts = new Ajv.default({ strict: false }).compile(schema)
  t.ok(accepts(values), JSON.stringify(accepts.errors))
  t.notOk(accepts({ ...values, replica: 3 }), 'the control')
  t.equal(values.config, config)
  t.end()
})
