// A real nginx before replicas, with the configuration of docker-compose.yml: round robin, no stickiness.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureNginx } from '../../scripts/programs.ts'
import { until, type Teardown } from './until.ts'

const shipped = new URL('../../deploy/compose/nginx.conf', import.meta.url)

/** @param gateways host and port of each */
export async function startNginx(t: Teardown, port: number, gateways: readonly string[]): Promise<void> {
  const program = ensureNginx()
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-nginx-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const text = await readFile(shipped, 'utf8')
  const config = [
    [/^ *server gateway-1:8080 (.*)$/m, gateways.map((each) => `server ${each} $1`).join('\n')],
    [/^ *server gateway-[23]:8080 .*\n/gm, ''],
    [/listen 8080;/, `listen 127.0.0.1:${port};`],
    // That of the authorization server.
    [/^ {2}server \{\s+listen 8081;[^]*?^ {2}\}\n/m, ''],
    [/\/tmp\//g, `${folder}/`],
    // A pipe of node is a socket, which cannot be opened by its name.
    [/\/dev\/stderr/, join(folder, 'errors')],
    [/worker_processes auto;/, 'worker_processes 1;']
  ] as const
  const own = config.reduce((made, [pattern, by]) => {
    if (made.search(pattern) === -1) throw new Error(`deploy/compose/nginx.conf has nothing like ${pattern}`)
    return made.replace(pattern, by)
  }, text)
  const file = join(folder, 'nginx.conf')
  await writeFile(file, own)
  const child = spawn(program, ['-p', folder, '-c', file, '-g', 'daemon off;'], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await until('nginx listens', async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${await readFile(join(folder, 'errors'), 'utf8')}`)
    return await listens(port)
  })
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
