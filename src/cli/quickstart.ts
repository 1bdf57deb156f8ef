// `quickstart`: runs a demo tenant with three upstreams and prints how to connect.

import { type ChildProcess, spawn } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { compileConfig } from '../config/load.ts'
import { openSocket } from '../egress/sockets.ts'
import type { Log } from '../observe/log.ts'
import { demoServers } from './demo-servers.ts'
import { banner, localApiKey } from './key.ts'
import type { Io } from './commands/command.ts'
import { type ListenArguments, openLog, runGateway } from './run.ts'

export interface QuickstartOptions extends Io, ListenArguments {}

export async function runQuickstart(options: QuickstartOptions): Promise<number> {
  const { env, stdout, host, port, data = './data' } = options
  const dataDir = resolve(data)
  const log = openLog(options, undefined)
  // First: whoever waits until npx has fetched the servers should not hear then that the folder is no good.
  const key = await localApiKey(dataDir)
  const { everything, memory } = await demoServers(env, log)
  const remotePort = await freePort()
  const config = {
    tenants: {
      demo: {
        auth: { keys: [{ name: 'quickstart', key: '${GATEHOUSE_KEY}' }] },
        upstreams: {
          everything: { command: process.execPath, args: [everything, 'stdio'] },
          memory: {
            command: process.execPath,
            args: [memory],
            env: { MEMORY_FILE_PATH: join(dataDir, 'memory.jsonl') }
          },
          remote: { type: 'http', url: `http://127.0.0.1:${remotePort}/mcp` }
        }
      }
    }
  }
  const snapshot = compileConfig(JSON.stringify(config), {
    path: 'quickstart',
    env: { GATEHOUSE_KEY: key },
    dataDir,
    host,
    port
  })
  const remote = startRemote(everything, remotePort, env, log)
  const exited = once(remote, 'exit')
  const kill = (): void => {
    remote.kill('SIGKILL')
  }
  process.on('exit', kill)
  await Promise.race([reachable(remotePort), exited])
  return await runGateway({
    ...options,
    snapshot,
    log,
    async onReady(gateway, address) {
      stdout.write(banner(address.publicUrl, snapshot, key))
      await gateway.warm()
    },
    async onClosed() {
      remote.removeAllListeners('exit')
      remote.kill('SIGTERM')
      const late = setTimeout(kill, 2_000)
      if (remote.exitCode === null && remote.signalCode === null) await Promise.race([once(remote, 'exit'), exited])
      clearTimeout(late)
    }
  })
}

/**
 * The third upstream, over Streamable HTTP. loopback-only.mjs keeps it from listening on every address of the machine.
 */
function startRemote(script: string, port: number, env: NodeJS.ProcessEnv, log: Log): ChildProcess {
  const guard = new URL('./loopback-only.mjs', import.meta.url)
  const child = spawn(process.execPath, ['--import', guard.href, script, 'streamableHttp'], {
    env: { PATH: env['PATH'], HOME: env['HOME'], PORT: String(port) },
    detached: true, // Ctrl+C and a closing terminal are for the gateway alone, which lets running calls finish.
    stdio: ['ignore', 'ignore', 'pipe']
  })
  // Without a descriptor left there is no pipe either, and the error comes later.
  child.stderr?.resume()
  child.on('exit', (code, signal) => log.warn({ code, signal }, 'the demo server behind upstream "remote" has ended'))
  child.on('error', (err) => log.error({ err }, 'the demo server behind upstream "remote" does not start'))
  return child
}

/** Resolves when the port accepts connections, or after a while: the gateway retries by itself. */
async function reachable(port: number): Promise<void> {
  const deadline = performance.now() + 10_000
  while (performance.now() < deadline) {
    const socket = openSocket(new URL(`tcp://127.0.0.1:${port}`))
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false
    )
    socket.destroy()
    if (connected) return
    await wait(20)
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
