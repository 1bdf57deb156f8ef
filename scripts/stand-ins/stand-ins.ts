// Stand-ins for the base images of Dockerfile and docker-compose.yml, under their very names, for a machine that reaches
// Debian's packages, npm and Go's modules but no image registry: so both files stay as they are. Made once, kept by podman.

import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
/** What all others are made from; it is there only where stand-ins are used. */
export const standInDebian = 'localhost/gatehouse-stand-in-debian'
const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends'
const user = (name: string, id: number): string =>
  `groupadd --gid ${id} ${name} && useradd --uid ${id} --gid ${name} --create-home ${name}`

/** What the official images have that these files use: users, paths, programs. */
const recipes = {
  node: `FROM ${standInDebian}
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
  && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \\
  && ${user('node', 1000)} && apt-get update && ${install} libstdc++6 && rm -rf /var/lib/apt/lists/*
CMD ["node"]
`,
  redis: `FROM ${standInDebian}
RUN ${user('redis', 999)} && apt-get update && ${install} redis-server && rm -rf /var/lib/apt/lists/* \\
  && install -d -o redis -g redis /data
VOLUME /data
WORKDIR /data
CMD ["redis-server"]
`,
  nginx: `FROM ${standInDebian}
RUN ${user('nginx', 101)} && apt-get update && ${install} nginx-light && rm -rf /var/lib/apt/lists/*
STOPSIGNAL SIGQUIT
CMD ["nginx", "-g", "daemon off;"]
`,
  prometheus: `FROM ${standInDebian}
RUN apt-get update && ${install} prometheus && rm -rf /var/lib/apt/lists/* \\
  && install -d -o nobody -g nogroup /prometheus
`,
  collector: 'FROM scratch\nCOPY otelcol /\n',
  grafana: `FROM ${standInDebian}
COPY node /usr/local/bin/node
COPY yaml /usr/local/lib/node_modules/yaml
COPY grafana.ts /
RUN groupadd --gid 472 grafana && useradd --uid 472 --gid 0 grafana \\
  && apt-get update && ${install} curl libstdc++6 && rm -rf /var/lib/apt/lists/* \\
  && install -d -o grafana -g root /var/lib/grafana
ENTRYPOINT ["node", "/grafana.ts"]
`,
  uv: 'FROM scratch\nCOPY uv uvx /\n'
} as const
type Kind = keyof typeof recipes

/** @returns the names of the images that Dockerfile and docker-compose.yml begin with, by what is in them */
export function baseImages(): Readonly<Record<Kind, string>> {
  const files = ['Dockerfile', 'docker-compose.yml'].map((name) => readFileSync(join(root, name), 'utf8')).join('\n')
  const named = (pattern: RegExp): string => {
    const [, name] = pattern.exec(files) ?? []
    if (name === undefined) throw new Error(`Dockerfile and docker-compose.yml have nothing like ${pattern}`)
    return name
  }
  return {
    node: named(/^ARG NODE_IMAGE=(\S+)$/m),
    uv: named(/^ARG UV_IMAGE=(\S+)$/m),
    redis: named(/image: (\S+\/redis:\S+)/),
    nginx: named(/image: (\S+\/nginx:\S+)/),
    prometheus: named(/image: (\S+\/prometheus:\S+)/),
    collector: named(/image: (\S+\/opentelemetry-collector:\S+)/),
    grafana: named(/image: (\S+\/grafana:\S+)/)
  }
}

/** @throws {Error} with what the program wrote, where it does not end well */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; timeout?: number } = {}
): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    timeout: 600_000,
    ...options,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024
  })
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? `exit ${status}`}\n${stdout}\n${stderr}`)
  return stdout
}

export const hasImage = (name: string): boolean => spawnSync('podman', ['image', 'exists', name]).status === 0

/**
 * Makes those that are missing. As root, with debootstrap, pip, npm and Go.
 * @returns whether there was anything to make
 */
export function makeStandIns(): boolean {
  const images = baseImages()
  const missing = (Object.keys(recipes) as Kind[]).filter((kind) => !hasImage(images[kind]))
  if (missing.length === 0) return false
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-images-'))
  try {
    if (!hasImage(standInDebian)) makeDebian(folder)
    for (const kind of missing) {
      gather(kind, folder)
      const recipe = join(folder, `Dockerfile.${kind}`)
      writeFileSync(recipe, recipes[kind])
      run('podman', ['build', '--quiet', '--network', 'host', '--file', recipe, '--tag', images[kind], folder])
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return true
}

/** Puts into the folder what the recipe of this kind copies. */
function gather(kind: Kind, folder: string): void {
  if (kind === 'node' || kind === 'grafana')
    copyFileSync(join(root, 'node_modules', 'node', 'bin', 'node'), join(folder, 'node'))
  if (kind === 'node') {
    cpSync(join(run('npm', ['root', '--global']).trim(), 'npm'), join(folder, 'npm'), { recursive: true })
    if (!existsSync(join(folder, 'npm', 'bin', 'npm-cli.js'))) throw new Error('npm is not where npm says it is')
  }
  if (kind === 'grafana') {
    cpSync(join(root, 'node_modules', 'yaml'), join(folder, 'yaml'), { recursive: true })
    copyFileSync(join(import.meta.dirname, 'grafana.ts'), join(folder, 'grafana.ts'))
  }
  if (kind === 'uv') fetchUv(folder, baseImages().uv)
  if (kind === 'collector') buildCollector(folder)
}

/** From its own modules, some hundred of them: three minutes of two cores, the first time. */
function buildCollector(folder: string): void {
  const source = join(folder, 'collector')
  cpSync(join(import.meta.dirname, 'collector'), source, { recursive: true })
  // The versions that are named here choose all others; `-mod=mod` writes them down.
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' }
  const args = ['build', '-trimpath', '-ldflags=-s -w', '-o', join(folder, 'otelcol'), '.']
  run('go', args, { cwd: source, env, timeout: 3_600_000 })
}

function makeDebian(folder: string): void {
  const [release = 'bookworm'] = /bookworm|trixie/.exec(baseImages().node) ?? []
  const targets = run('apt-get', ['indextargets', '--format', '$(CODENAME) $(REPO_URI)', 'Created-By: Packages'])
  const mirror = targets
    .split('\n')
    .find((line) => line.startsWith(`${release} `))
    ?.split(' ')[1]
  const system = join(folder, 'debian')
  const args = ['--variant=minbase', '--include=ca-certificates', release, system]
  run('debootstrap', mirror === undefined ? args : [...args, mirror])
  const archive = join(folder, 'debian.tar')
  run('tar', ['-C', system, '-cf', archive, '.'])
  run('podman', ['import', archive, standInDebian])
  rmSync(system, { recursive: true })
  rmSync(archive)
}

/** The wheel of PyPI holds the programs of the official image. */
function fetchUv(folder: string, image: string): void {
  const version = image.split(':').at(-1)
  run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', join(folder, 'wheel'), `uv==${version}.*`])
  const unpack = `import glob, os, sys, zipfile
wheel = zipfile.ZipFile(glob.glob('wheel/*.whl')[0])
for name in wheel.namelist():
    if name.endswith(('/scripts/uv', '/scripts/uvx')):
        open(os.path.basename(name), 'wb').write(wheel.read(name))`
  run('python3', ['-c', unpack], { cwd: folder })
  for (const name of ['uv', 'uvx']) chmodSync(join(folder, name), 0o755)
}
