// Attack: a tenant has as much sent at once as it can, of each kind. The neighbour's request came last, and waits for few
// of them: that is a matter of their order, not of time.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

t.test('of what comes at once, the request of a neighbour that came last is answered among the first', async (t) => {
  const rates = { requestsPerSecondPerPrincipal: 100_000, requestsPerSecondPerTenant: 100_000 }
  const gateway = await attacked(t, { limits: { ...rates, queueMs: 300_000 } })
  const { host, port } = new URL(gateway.origin)
  const initialize = (id: number, long = '') => ({
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' }, long }
  })
  const kinds = {
    'small requests': (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' }),
    'sessions that are opened': (id: number) => initialize(id),
    'long requests': (id: number) => initialize(id, 'x'.repeat(100_000)),
    'calls of a tool': (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'calm__echo' } }),
    'requests that are refused': (id: number) => ({ jsonrpc: '2.0', id, method: 'no/such', params: {} })
  }
  const sessions = {
    noisy: await legacyClient(gateway.url, keys.attacker),
    calm: await legacyClient(gateway.neighbourUrl, keys.neighbour)
  }
  const paths = { noisy: new URL(gateway.url).pathname, calm: new URL(gateway.neighbourUrl).pathname }
  type Tenant = keyof typeof paths
  type Send = (message: { readonly id: number }) => void
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })

  for (const [kind, messageOf] of Object.entries(kinds)) {
    /** Names of the connections of which the last message was answered, in the order of these answers. */
    const answered = new Set<string>()
    const open = async (name: string, tenant: Tenant): Promise<Send> => {
      const socket = dial(Number(port))
      t.teardown(() => socket.destroy())
      let awaited = ''
      let text = ''
      // An answer comes in several pieces, of which the one with its id counts.
      socket.on('data', (part: Buffer) => {
        text += part.toString('latin1')
        if (text.includes(awaited)) answered.add(name)
      })
      socket.on('error', () => {})
      const send = (message: { readonly id: number }): void => {
        awaited = `"id":${message.id}`
        text = ''
        const { 'mcp-session-id': session, ...others } = sessions[tenant].headers
        const own =
          'params' in message && 'protocolVersion' in (message.params as object)
            ? others
            : { ...others, 'mcp-session-id': session }
        const body = JSON.stringify(message)
        const headers = Object.entries(own).map(([header, value]) => `${header}: ${value}\r\n`)
        socket.write(
          `POST ${paths[tenant]} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n` +
            `${headers.join('')}\r\n${body}`
        )
      }
      // From then on the gateway knows whose connection it is.
      send(ping(0))
      await until('it is answered', () => answered.has(name))
      return send
    }
    const noise: Send[] = []
    for (let n = 0; n < 90; n++) noise.push(await open(`noisy ${n}`, 'noisy'))
    const [first, last] = [await open('first', 'calm'), await open('last', 'calm')]
    /** @returns how many of the others were answered before it */
    async function answeredBefore(run: number): Promise<number> {
      answered.clear()
      await gateway.pause()
      first(ping(run * 1_000 + 500))
      noise.forEach((send, id) => send(messageOf(run * 1_000 + id)))
      last(messageOf(run * 1_000 + 600))
      gateway.signal('SIGCONT')
      await until('all are answered', () => answered.size === noise.length + 2)
      return [...answered].indexOf('last')
    }
    // A busy machine gives a processor to whom it likes, so a child process may answer late: some runs say nothing.
    let least = Infinity
    for (let run = 1; run <= 4 && !(least < 12); run++) least = Math.min(least, await answeredBefore(run))
    t.ok(least >= 0 && least < 12, `${kind}: ${least} were answered before it`)
  }
})
