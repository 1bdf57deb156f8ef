// What docker-compose.yml promises, tried from outside while it runs (scripts/containers.ts brings it up).

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { meetGrafana } from './grafana.ts'
import { logIn } from './login.ts'
import { meetNpx } from './npx.ts'

export interface Stack {
  readonly url: string
  name(service: string): string
  /** @throws {Error} where podman fails */
  podman(...args: string[]): string
  podmanInBackground(...args: string[]): Promise<unknown>
  /** Where Grafana answers. */
  readonly grafana: string
  /** What a service wrote to standard error. */
  log(service: string): string
  /** Of `podman run`: with these npm reaches its registry, as it does while images are built. */
  readonly npm: readonly string[]
}

export interface Outcome {
  readonly step: string
  readonly failure: string | undefined
}

const gateways = ['gateway-1', 'gateway-2', 'gateway-3'] as const
/** Of a machine that has other work. */
const startMs = 300_000

export async function meetContainers(stack: Stack): Promise<Outcome[]> {
  const { url, podman, name } = stack
  const inspect = (service: string, format: string): string =>
    podman('inspect', '--format', format, name(service)).trim()
  const isReady = (service: string): boolean => {
    try {
      podman('healthcheck', 'run', name(service))
      return true
    } catch {
      return false // Not yet.
    }
  }
  const allReady = (): Promise<boolean> =>
    until('all gateways are ready, by the health check of the image', () => gateways.every(isReady), startMs)
  const session = async (token: string): Promise<Client> => {
    const client = new Client({ name: 'host', version: '1.0.0' })
    const headers = { authorization: `Bearer ${token}` }
    // Its types are looser than exactOptionalPropertyTypes allows.
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) as never)
    return client
  }
  const says = async (client: Client, tool: string, args: Record<string, unknown> = {}): Promise<string> => {
    const { content } = (await client.callTool({ name: tool, arguments: args })) as { content: Array<{ text: string }> }
    return content[0]?.text ?? ''
  }

  const outcomes: Outcome[] = []
  const step = async (what: string, check: () => Promise<void>): Promise<void> => {
    const failure = await check().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? `${error.message}\n${error.stack}` : String(error))
    )
    outcomes.push({ step: what, failure })
  }

  await step('all three gateways become ready, and the proxy listens', async () => {
    await allReady()
    await until('the proxy is healthy, by its own check', () => isReady('proxy'), startMs)
  })
  await step('only the proxy is published, on loopback', async () => {
    for (const service of [...gateways, 'redis', 'authorization', 'tickets', 'secrets'])
      assert.doesNotMatch(inspect(service, '{{json .HostConfig.PortBindings}}'), /HostPort/, service)
    const published = inspect('proxy', '{{json .HostConfig.PortBindings}}')
    const hosts = [...published.matchAll(/"HostIp":"([^"]*)"/g)].map(([, host]) => host)
    assert.deepEqual(hosts, ['127.0.0.1', '127.0.0.1'])
  })
  await step(
    'a gateway runs below an init, as nobody in particular, on a file system that it cannot change',
    async () => {
      const gateway = name('gateway-1')
      assert.match(podman('exec', gateway, 'cat', '/proc/1/cmdline'), /^\/usr\/bin\/tini\0/)
      const write = (path: string): string =>
        podman(
          'exec',
          gateway,
          'node',
          '-p',
          `try { fs.writeFileSync('${path}', ''), process.getuid() } catch ({ code }) { code }`
        ).trim()
      assert.equal(write('/tmp/probe'), '1000')
      assert.equal(write('/app/probe'), 'EROFS')
      assert.equal(inspect('redis', '{{.HostConfig.ReadonlyRootfs}}'), 'true')
    }
  )
  await step('the image says what it is, and holds no npm and no development dependency', async () => {
    const image = podman('image', 'inspect', '--format', '{{json .Config}}', 'localhost/gatehouse:local')
    assert.match(image, /"org\.opencontainers\.image\.title":"Gatehouse"/)
    assert.match(image, /"StopSignal":"SIGTERM"/)
    const present = podman(
      'exec',
      name('gateway-1'),
      'node',
      '-p',
      `['/app/node_modules/fastify', '/app/node_modules/tap', '/usr/local/bin/npm'].map((path) => fs.existsSync(path))`
    )
    assert.match(present, /\[\s*true,\s*false,\s*false\s*\]/)
  })
  await step('the image with runtimes has Node, npm, Python and uv for its user', async () => {
    for (const program of ['node', 'npx', 'python3', 'uv', 'uvx']) {
      const image = 'localhost/gatehouse-with-runtimes:local'
      const flags = ['--rm', '--read-only', '--tmpfs=/tmp', '--network=none', `--entrypoint=${program}`]
      assert.match(podman('run', ...flags, image, '--version'), /\d+\.\d+/)
    }
  })
  await step('npx starts an upstream in the image with runtimes, where /tmp may run programs, as is documented', () =>
    meetNpx(podman, stack.npm)
  )
  await step('Redis keeps an append-only file and evicts nothing', async () => {
    const password = podman('exec', name('gateway-1'), 'cat', '/run/secrets/redis-password').trim()
    const config = (key: string): string =>
      podman('exec', name('redis'), 'redis-cli', '--no-auth-warning', '-a', password, 'config', 'get', key)
    assert.match(config('appendonly'), /yes/)
    assert.match(config('maxmemory-policy'), /noeviction/)
    assert.match(podman('exec', name('redis'), 'redis-cli', 'dbsize'), /NOAUTH/)
  })

  const question = (expression: string): string =>
    podman('exec', name('prometheus'), 'promtool', 'query', 'instant', 'http://127.0.0.1:9090', expression).trim()
  await step('Prometheus reads every gateway and the collector, and has the alerts', async () => {
    await until('all three are read', () => question('sum(up{job="gatehouse"})').startsWith('{} => 3 '), startMs)
    await until('the collector is read', () => question('sum(up{job="collector"})').startsWith('{} => 1 '), startMs)
    assert.match(question('sum(gatehouse_tenants)'), /^\{\} => 3 /)
    const rules = `fetch('http://prometheus:9090/api/v1/rules').then((it) => it.text()).then(console.log)`
    assert.match(podman('exec', name('gateway-1'), 'node', '--eval', rules), /"name":"GatehouseUpstreamAway"/)
  })

  let client: Client | undefined
  const host = (): Client => {
    assert.ok(client !== undefined, 'nobody has logged in')
    return client
  }
  /** Calls until it is answered. @param check throws for an error after which it is not called again */
  const echoed = (text: string, check: (error: string) => void): Promise<boolean> =>
    until('a call of the session is answered', async () => {
      const outcome = await says(host(), 'tickets__echo', { text }).catch((error: unknown) => ({ error }))
      if (typeof outcome === 'object') check(String(outcome.error))
      else assert.equal(outcome, text)
      return typeof outcome === 'string'
    })
  await step('a host logs a person in and lists the tools of both upstreams', async () => {
    client = await session(await logIn(url, 'alice'))
    const names = await until('both upstreams are listed', async () => {
      const { tools } = await host().listTools()
      return tools.length === 4 && tools.map((tool) => tool.name).sort()
    })
    assert.deepEqual(names, ['notes__echo', 'notes__where', 'tickets__echo', 'tickets__where'])
  })
  await step('the API key of the secrets works as well, and another one does not', async () => {
    const key = podman('exec', name('gateway-1'), 'cat', '/run/secrets/api-key').trim()
    const other = await session(key)
    assert.equal(await says(other, 'tickets__echo', { text: 'key' }), 'key')
    await other.close()
    await assert.rejects(session(`${key}x`))
  })
  await step('calls of one session reach both upstreams, and one process of the stdio server', async () => {
    assert.equal(await says(host(), 'notes__echo', { text: 'stdio' }), 'stdio')
    assert.equal(await says(host(), 'tickets__echo', { text: 'http' }), 'http')
    const machines = new Set<string>()
    for (let calls = 0; calls < 3 * gateways.length; calls += 1) machines.add(await says(host(), 'notes__where'))
    assert.equal(machines.size, 1)
  })
  await step('calls without a session are served by all three gateways', async () => {
    const key = podman('exec', name('gateway-1'), 'cat', '/run/secrets/api-key').trim()
    const machines = new Set<string>()
    await until('every gateway has served one', async () => {
      const { text } = await modernRequest(url, 'tools/call', { name: 'notes__where' }, { token: key })
      const [, machine] = /"text":"([^"]+)"/.exec(text) ?? []
      assert.ok(machine !== undefined, text)
      return machines.add(machine).size === gateways.length
    })
  })
  await step(
    'the trace of a call arrives at the collector, with the spans of the gateway and of its upstream',
    async () => {
      const key = podman('exec', name('gateway-1'), 'cat', '/run/secrets/api-key').trim()
      const trace = randomBytes(16).toString('hex')
      const meta = { traceparent: `00-${trace}-${randomBytes(8).toString('hex')}-01` }
      const call = { name: 'tickets__echo', arguments: { text: 'traced' } }
      const { status } = await modernRequest(url, 'tools/call', call, { token: key, meta })
      assert.equal(status, 200)
      const spans = (): string[] =>
        stack
          .log('collector')
          .split('\n')
          .filter((line) => line.includes(trace))
      await until('both spans are in its log', () => spans().length === 2, startMs)
      assert.match(spans().join('\n'), /gatehouse\.outcome=ok/)
      assert.doesNotMatch(spans().join('\n'), /traced/, 'arguments are in no span')
    }
  )
  await step('Grafana shows the dashboards to whoever reaches it, and lets nobody change anything', () =>
    meetGrafana(stack.grafana)
  )
  await step('a gateway is killed, and the session goes on at the others', async () => {
    podman('kill', '--signal=KILL', name('gateway-1'))
    try {
      for (let count = 0; count < 12; count += 1)
        // The other gateways connect to the server for this session; a busy machine may need longer for it.
        await echoed(String(count), (error) => assert.match(error, /did not answer initialize .* Retry then\./))
    } finally {
      podman('start', name('gateway-1'))
    }
    await allReady()
  })
  await step('Redis restarts, and no session is lost', async () => {
    podman('stop', '--time=20', name('redis'))
    podman('start', name('redis'))
    await allReady()
    // A session that was lost comes back under another id: the client would have to open it anew.
    await echoed('kept', (error) => assert.doesNotMatch(error, /404|unknown session/i))
  })
  await step('SIGTERM drains: no request is refused meanwhile or after, and the gateway ends with code 0', async () => {
    const echo = async (text: string): Promise<void> =>
      assert.equal(await says(host(), 'tickets__echo', { text }), text)
    // Redis has just been away: every gateway has to have a connection of the session again.
    for (let calls = 0; calls < 2 * gateways.length; calls += 1) await echoed('again', () => {})
    const end = new AbortController()
    const stopped = stack.podmanInBackground('stop', '--time=40', name('gateway-2')).finally(() => end.abort())
    let calls = 0
    for (; !end.signal.aborted; calls += 1) await echo(`while it drains ${calls}`)
    await stopped
    assert.ok(calls > 20, `the other gateways and the one that drained have served ${calls} calls`)
    assert.equal(inspect('gateway-2', '{{.State.ExitCode}}'), '0')
    assert.match(stack.log('gateway-2'), /"msg":"stopped"/)
    for (let left = 0; left < 12; left += 1) await echo(`two left ${left}`)
  })
  await client?.close()
  return outcomes
}
