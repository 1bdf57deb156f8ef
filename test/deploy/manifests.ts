// The manifests of deploy/, as objects, and what the API of Kubernetes says of them.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'

export const repository = join(import.meta.dirname, '..', '..')
export const deploy = join(repository, 'deploy')
export const basePath = join(deploy, 'kubernetes', 'base')

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec: any // eslint-disable-line typescript/no-explicit-any
}

export const readManifests = (text: string): Manifest[] =>
  parseAllDocuments(text).map((document) => document.toJS() as Manifest)

/** Of a folder, without what is kustomize's or a configuration. */
export const manifestsIn = (folder: string): Manifest[] =>
  readdirSync(folder)
    .filter((file) => !['kustomization.yaml', 'gatehouse.yaml'].includes(file))
    .flatMap((file) => readManifests(readFileSync(join(folder, file), 'utf8')))

const modules: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'autoscaling/v2': 'autoscaling/v2',
  'networking.k8s.io/v1': 'networking/v1',
  'policy/v1': 'policy/v1'
}

/**
 * Has the compiler check them against the types of the API of Kubernetes 1.30, which knows no other members.
 * @param folder within the repository, for a file of the compiler
 * @returns what is wrong, a line each
 */
export function typeErrors(manifests: readonly Manifest[], folder: string): string[] {
  const file = join(folder, 'manifests.ts')
  const lines = manifests.map((manifest, at) => {
    const { apiVersion, kind } = manifest
    const type = `import('kubernetes-types/${modules[apiVersion] ?? apiVersion}').${kind}`
    return `export const manifest${at}: ${type} = ${JSON.stringify(manifest)}`
  })
  writeFileSync(file, lines.join('\n'))
  const args = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'esnext',
    '--moduleResolution',
    'bundler',
    '--ignoreConfig',
    file
  ]
  const { stdout } = spawnSync(join(repository, 'node_modules', '.bin', 'tsc'), args, { cwd: folder, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line.includes('error TS'))
}
