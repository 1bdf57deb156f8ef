// The path of a warm call through src, recorded in a gateway of its own: for each kind of client, upstream and call the
// files in the order in which they are entered, and how many functions run.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { replies, script } from '../kit/parking-gateway.ts'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'

export interface CallPath {
  readonly client: 'legacy' | 'modern'
  readonly upstream: 'http' | 'stdio'
  readonly serverRequest: boolean
  /** Relative to src, in the order of entry. */
  readonly files: readonly string[]
  readonly functions: number
}

const key = 'gh_key_of_the_trace_0123456789'
const capabilities = { elicitation: { form: {}, url: {} } }
const bin = join(import.meta.dirname, '..', '..', 'bin', 'gatehouse.mjs')

/** A timer, or what a call before left to do, adds to a recording: that of the fewest functions is the call alone. */
const recordings = 5

/** Lines of the log are written a moment later, which on a slow machine comes before the call is over. */
const isLater = (file: string): boolean => file.startsWith('observe/lines/')

/** Runs calls of each kind and records them after the first. */
export async function recordCallPaths(): Promise<CallPath[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-trace-'))
  const upstream = await startUpstream({ ...script, answers: 'sse' })
  const config = join(folder, 'gatehouse.json')
  const stdio = {
    command: process.execPath,
    args: [join(import.meta.dirname, '..', 'kit', 'stdio-server.ts'), JSON.stringify(script)]
  }
  writeFileSync(
    config,
    JSON.stringify({
      store: 'memory:',
      // The first call of each kind waits for its server however slow the machine.
      limits: { coldStartMs: 30_000 },
      tenants: {
        acme: {
          auth: { keys: [{ name: 'trace', key }] },
          upstreams: { http: { type: 'http', url: upstream.url }, stdio },
          endpoints: { http: { upstreams: ['http'] }, stdio: { upstreams: ['stdio'] } }
        }
      }
    })
  )
  const gateway = spawn(
    process.execPath,
    ['--import', join(import.meta.dirname, 'hook.ts'), bin, 'serve', '--config', config, '--port', '0'],
    { cwd: folder, stdio: ['ignore', 'pipe', 'ignore', 'ipc'] }
  )
  const ended = once(gateway, 'exit')
  const ready = Promise.withResolvers<string>()
  createInterface(gateway.stdout as Readable).on('line', (line) => {
    const url = /^gatehouse listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) ready.resolve(url)
  })
  ended.then(() => ready.reject(new Error('the gateway ended')), ready.reject)
  try {
    const base = await ready.promise
    const paths: CallPath[] = []
    for (const client of ['legacy', 'modern'] as const) {
      for (const up of ['http', 'stdio'] as const) {
        for (const serverRequest of [false, true]) {
          const call = await callerOf(client, `${base}/t/acme/${up}/mcp`, up, serverRequest)
          const told = async (word: 'start' | 'stop'): Promise<string[]> => {
            gateway.send(word)
            const [sites] = (await once(gateway, 'message')) as [string[]]
            return sites
          }
          await call()
          let sites: string[] | undefined
          for (let n = 0; n < recordings; n++) {
            await told('start')
            await call()
            const recorded = await told('stop')
            if (sites === undefined || recorded.length < sites.length) sites = recorded
          }
          if (sites === undefined) throw new Error('nothing was recorded')
          const files = [...new Set(sites.map((site) => site.split(' ')[0] ?? ''))].filter((file) => !isLater(file))
          paths.push({ client, upstream: up, serverRequest, files, functions: sites.length })
        }
      }
    }
    return paths
  } finally {
    gateway.kill('SIGTERM')
    await ended
    await upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function callerOf(
  client: CallPath['client'],
  url: string,
  upstream: string,
  serverRequest: boolean
): Promise<() => Promise<void>> {
  const name = `${upstream}__${serverRequest ? 'elicit' : 'echo'}`
  if (client === 'modern') return () => modernCall(url, name)
  const session = await legacyClient(url, key, '2025-11-25', capabilities)
  let id = 0
  if (serverRequest) {
    return async () => {
      const call = await callUntilServerRequest(url, session, name, {}, `call-${++id}`)
      await post(url, session, { id: call.serverRequest['id'], result: replies.form })
      await call.result()
    }
  }
  return async () => {
    const params = { name, arguments: { text: 'hi' } }
    const answer = await send(url, {
      headers: {
        ...session.headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream'
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
    })
    if (answer.status !== 200) throw new Error(`the call was answered ${answer.status}: ${answer.text}`)
  }
}

async function modernCall(url: string, name: string): Promise<void> {
  const params = { name, arguments: { text: 'hi' } }
  const options = { token: key, capabilities }
  const { result } = (await modernRequest(url, 'tools/call', params, options)).json
  if (result?.resultType !== 'input_required') return
  const inputResponses = Object.fromEntries(Object.keys(result.inputRequests).map((each) => [each, replies.form]))
  await modernRequest(url, 'tools/call', { ...params, inputResponses, requestState: result.requestState }, options)
}

const titleOf = ({ client, upstream, serverRequest }: CallPath): string =>
  `${client} client, ${upstream} upstream, ${serverRequest ? 'with' : 'without'} a server request`

/** docs/call-paths.md: the first path in full, each other one as it differs from the first of its client. */
export function callPathsPage(paths: readonly CallPath[]): string {
  const sections = paths.map((path) => {
    const base = paths.find(({ client }) => client === path.client) ?? path
    const head = `## ${titleOf(path)}\n\n${path.files.length} files.\n`
    if (base === path) return `${head}\n${path.files.map((file) => `1. \`${file}\``).join('\n')}\n`
    const added = path.files.filter((file) => !base.files.includes(file))
    const left = base.files.filter((file) => !path.files.includes(file))
    const list = (what: string, files: readonly string[]): string =>
      files.length === 0 ? '' : `\n${what}: ${files.map((file) => `\`${file}\``).join(', ')}.\n`
    return `${head}\nAs a ${titleOf(base)}.${list('Also', added)}${list('Without', left)}`
  })
  return [
    '# The path of a warm call, file by file',
    '*Written by `node scripts/trace.ts --write` from a recorded call of each kind; do not edit. [architecture.md](architecture.md) explains the hops.*',
    ...sections
  ].join('\n\n')
}
