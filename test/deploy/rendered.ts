// What kustomize makes of deploy/kubernetes and helm of deploy/helm, with both programs: run by `npm run kubernetes`.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { deploy, readManifests, typeErrors, type Manifest } from './manifests.ts'

t.test('kustomize and helm make the same objects', (t) => {
  const made = (program: string, ...args: string[]): Map<string, Manifest> => {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: deploy })
    t.equal(status, 0, stderr)
    return new Map(readManifests(stdout).map((each) => [`${each.kind} ${each.metadata.name}`, each]))
  }
  const helm = (...more: string[]) =>
    made('helm', 'template', 'gatehouse', 'helm/gatehouse', '-n', 'gatehouse', '--kube-version', '1.30.0', ...more)
  const [one, other] = [made('kustomize', 'build', 'kubernetes/base'), helm()]
  t.same([...other.keys()].toSorted(), [...one.keys()].toSorted())
  for (const [name, manifest] of one) t.same(other.get(name), manifest, name)
  t.same(typeErrors([...other.values(), ...made('kustomize', 'build', 'kubernetes/try').values()], t.testdir()), [])
  const overlay = t.testdir({
    'kustomization.yaml': JSON.stringify({
      resources: [relative(t.testdirName, join(deploy, 'kubernetes', 'base'))],
      components: [relative(t.testdirName, join(deploy, 'kubernetes', 'metrics'))]
    })
  })
  const [measured, alike] = [made('kustomize', 'build', overlay), helm('--set', 'metrics.enabled=true')]
  for (const [name, manifest] of measured) t.same(alike.get(name), manifest, `with metrics: ${name}`)
  const autoscaler = 'HorizontalPodAutoscaler gatehouse'
  t.equal(measured.get(autoscaler)?.spec.metrics.length, one.get(autoscaler)?.spec.metrics.length + 1)
  t.same(typeErrors([...measured.values()], overlay), [])
  const values = join(t.testdirName, 'values.json')
  const [claim, mount] = [
    { name: 'ca', configMap: { name: 'ca' } },
    { name: 'ca', mountPath: '/etc/ca' }
  ]
  const affinity = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }
  writeFileSync(
    values,
    JSON.stringify({
      terminationGracePeriodSeconds: 90,
      tmp: { sizeLimit: '512Mi' },
      extraVolumes: [claim],
      extraVolumeMounts: [mount],
      affinity
    })
  )
  const grown = helm('--values', values)
  const { containers, volumes, ...pod } = grown.get('Deployment gatehouse')?.spec.template.spec ?? {}
  t.match(pod, { terminationGracePeriodSeconds: 90, affinity })
  t.same(volumes.slice(-2), [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '512Mi' } }, claim])
  t.same(containers[0].volumeMounts.at(-1), mount)
  t.same(typeErrors([...grown.values()], t.testdirName), [])
  const renamed = made('helm', 'template', 'team-a', 'helm/gatehouse', '--kube-version', '1.30.0')
  t.equal(renamed.get('Deployment team-a')?.spec.template.spec.containers[0].name, 'gatehouse', 'Prometheus finds it')
  const few = helm('--set', 'ingress.enabled=false,autoscaling.enabled=false,networkPolicy.enabled=false,replicas=2')
  t.same(few.size, one.size - 3)
  t.equal(few.get('Deployment gatehouse')?.spec.replicas, 2)
  t.same(typeErrors([...few.values()], t.testdir()), [])
  t.end()
})
