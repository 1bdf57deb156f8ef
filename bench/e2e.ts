// End to end over loopback: load -> what stands in the middle -> upstream, each a process of its own. The ways are
// measured in turn, round after round, so that whatever else the machine does falls on all of them alike.

import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { median, quantile, table } from './figures.ts'
import type { Job, Load } from './load.ts'

export interface EndToEndOptions {
  /** Measured time for each way, in seconds; the warm-up comes on top. */
  readonly seconds: number
  readonly workers: number
  /** Where the gateway writes a CPU profile when it ends. Figures of such a run are not comparable. */
  readonly profile: string | undefined
}

export interface EndToEnd {
  readonly text: string
  readonly figures: Readonly<Record<string, unknown>>
}

interface Way {
  readonly name: string
  readonly url: string
  readonly token: string
  /** Of the process in the middle. */
  readonly pid?: number | undefined
  /** The ways that its CPU time is compared with: the reference, and a harder one. */
  readonly bases?: readonly [reference: string, harder?: string]
}

const roundMs = 600
const warmMs = 100
/** Some ten thousand calls, after which little is compiled any more. */
const firstWarmMs = 3_000
const apiKey = 'gh_bench_key_0123456789abcdef'

export async function endToEnd({ seconds, workers, profile }: EndToEndOptions): Promise<EndToEnd> {
  if (process.platform !== 'linux')
    throw new Error('The end-to-end bench reads CPU time from /proc and needs Linux. Use --only path elsewhere.')
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const children: ChildProcess[] = []
  const started = (child: ChildProcess): ChildProcess => {
    children.push(child)
    return child
  }
  const issuer = await startIssuer()
  try {
    const upstream = started(fork(join(import.meta.dirname, 'upstream.ts')))
    const upstreamUrl = await firstMessage(upstream)
    const proxyOf = (how: string): ChildProcess =>
      started(fork(join(import.meta.dirname, 'proxy.ts'), [upstreamUrl, how]))
    const [stream, pipe] = [proxyOf('stream'), proxyOf('pipe')]
    const [streamUrl, pipeUrl] = await Promise.all([firstMessage(stream), firstMessage(pipe)])
    const { child: gateway, url: gatewayUrl } = await startGateway(folder, upstreamUrl, issuer.url, profile, started)
    const load = started(fork(join(import.meta.dirname, 'load.ts')))
    const tokenFor = (path: string): Promise<string> => issuer.token(gatewayUrl + path)
    const jwt = await tokenFor('/t/bench/mcp')
    const ways: Way[] = [
      { name: 'direct', url: `${upstreamUrl}/json`, token: jwt },
      { name: 'bare proxy', url: `${pipeUrl}/json`, token: jwt, pid: pipe.pid },
      { name: 'bare proxy, stream()', url: `${streamUrl}/json`, token: jwt, pid: stream.pid, bases: ['bare proxy'] },
      {
        name: 'gateway, JWT',
        url: `${gatewayUrl}/t/bench/mcp`,
        token: jwt,
        pid: gateway.pid,
        bases: ['bare proxy', 'bare proxy, stream()']
      },
      {
        name: 'gateway, API key',
        url: `${gatewayUrl}/t/bench/second/mcp`,
        token: apiKey,
        pid: gateway.pid,
        bases: ['bare proxy', 'bare proxy, stream()']
      },
      { name: 'bare proxy, SSE', url: `${pipeUrl}/sse`, token: jwt, pid: pipe.pid },
      {
        name: 'gateway, JWT, SSE',
        url: `${gatewayUrl}/t/bench/streamed/mcp`,
        token: await tokenFor('/t/bench/streamed/mcp'),
        pid: gateway.pid,
        bases: ['bare proxy, SSE']
      }
    ]

    const rounds = Math.max(3, Math.round((seconds * 1000) / roundMs))
    const loads = new Map<string, Load[]>(ways.map(({ name }) => [name, []]))
    const job = ({ url, token, pid }: Way, warm: number, ms: number): Job => ({
      url,
      token,
      pid,
      workers,
      warmMs: warm,
      ms
    })
    for (const one of ways) await measure(load, job(one, firstWarmMs, 50))
    for (let round = 0; round < rounds; round++) {
      for (const one of ways) loads.get(one.name)?.push(await measure(load, job(one, warmMs, roundMs)))
    }
    if (profile !== undefined) await stop(gateway)
    return report(ways, loads, workers, rounds)
  } finally {
    await Promise.all(children.map(stop))
    issuer.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function report(
  ways: readonly Way[],
  loads: ReadonlyMap<string, readonly Load[]>,
  workers: number,
  rounds: number
): EndToEnd {
  const cpuUs = (name: string): number[] => (loads.get(name) ?? []).map((load) => (load.cpuMs * 1000) / load.requests)
  /** Round by round, so that both had the same neighbours. */
  const ratiosOf = (name: string, base: string | undefined): number[] | undefined => {
    if (base === undefined) return undefined
    const against = cpuUs(base)
    return cpuUs(name).map((value, round) => value / (against[round] ?? Number.NaN))
  }
  const rows = ways.map(({ name, pid, bases = [] }) => {
    const all = loads.get(name) ?? []
    const [ratios, toStream] = [ratiosOf(name, bases[0]), ratiosOf(name, bases[1])]
    return {
      name,
      cpuUs: pid === undefined ? undefined : median(cpuUs(name)),
      ratio: ratios === undefined ? undefined : median(ratios),
      ratios,
      toStream: toStream === undefined ? undefined : median(toStream),
      perSecond: median(all.map(({ requests, seconds }) => requests / seconds)),
      p50Ms: median(all.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(all.map(({ p99Ms }) => p99Ms))
    }
  })
  const text =
    table(
      ['end to end', 'CPU us/req', 'ratio', 'quartiles', 'to stream()', 'req/s', 'p50 ms', 'p99 ms'],
      rows.map((row) => [
        row.name,
        row.cpuUs?.toFixed(0) ?? '',
        row.ratio?.toFixed(2) ?? '',
        row.ratios === undefined
          ? ''
          : `${quantile(row.ratios, 0.25).toFixed(2)}-${quantile(row.ratios, 0.75).toFixed(2)}`,
        row.toStream?.toFixed(2) ?? '',
        row.perSecond.toFixed(0),
        row.p50Ms.toFixed(2),
        row.p99Ms.toFixed(2)
      ])
    ) +
    `${workers} workers with a session each, ${rounds} rounds. CPU of the process in the middle; its ratio to the bare proxy in the same round.\n`
  return { text, figures: Object.fromEntries(rows.map(({ name, ...rest }) => [name, rest])) }
}

async function measure(load: ChildProcess, job: Job): Promise<Load> {
  const answer = once(load, 'message')
  load.send(job)
  const [message] = (await answer) as [{ load?: Load; error?: string }]
  if (message.load === undefined) throw new Error(`${job.url}: ${message.error}`)
  return message.load
}

async function firstMessage(child: ChildProcess): Promise<string> {
  const [message] = (await once(child, 'message')) as [string]
  return message
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** A key set and tokens signed with it. */
async function startIssuer(): Promise<{
  url: string
  token: (audience: string) => Promise<string>
  close: () => void
}> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    token: (audience) =>
      new SignJWT({ client_id: 'bench', scope: 'mcp' })
        .setProtectedHeader({ alg: 'ES256', kid: 'bench', typ: 'at+jwt' })
        .setIssuer(url)
        .setSubject('bench')
        .setAudience(audience)
        .setJti('bench')
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey),
    close() {
      server.closeAllConnections()
      server.close()
    }
  }
}

/** The real command with the real defaults: a session store in a file, the log as JSON lines into a file. */
async function startGateway(
  folder: string,
  upstreamUrl: string,
  issuerUrl: string,
  profile: string | undefined,
  started: (child: ChildProcess) => ChildProcess
): Promise<{ child: ChildProcess; url: string }> {
  const file = join(folder, 'gatehouse.json')
  writeFileSync(
    file,
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      store: `file:${join(folder, 'gatehouse.db')}`,
      // One caller is all the load.
      limits: { requestsPerSecondPerPrincipal: 1_000_000, requestsPerSecondPerTenant: 1_000_000 },
      tenants: {
        bench: {
          auth: {
            issuers: [{ issuer: issuerUrl, jwksUri: `${issuerUrl}/jwks` }],
            keys: [{ name: 'bench', key: apiKey, scopes: ['mcp'] }],
            requiredScopes: ['mcp']
          },
          upstreams: {
            json: { type: 'http', url: `${upstreamUrl}/json` },
            sse: { type: 'http', url: `${upstreamUrl}/sse` }
          },
          endpoints: {
            default: { upstreams: ['json'] },
            second: { upstreams: ['json'] },
            streamed: { upstreams: ['sse'] }
          }
        }
      }
    })
  )
  const log = openSync(join(folder, 'gatehouse.log'), 'a')
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const child = started(
    spawn(
      process.execPath,
      [...flags, join(import.meta.dirname, '..', 'bin', 'gatehouse.mjs'), 'serve', '--config', file],
      { stdio: ['ignore', 'pipe', log] }
    )
  )
  closeSync(log)
  if (child.stdout === null) throw new Error('the gateway has no standard output')
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = /^gatehouse listening on (\S+)$/.exec(line) ?? []
    if (url !== undefined) return { child, url }
  }
  throw new Error(`the gateway ended before it was ready:\n${readFileSync(join(folder, 'gatehouse.log'), 'utf8')}`)
}
