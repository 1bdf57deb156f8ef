// `node neighbour.ts URL KEY`, with IPC: a caller who does nothing wrong. It calls a tool every 20 ms, one call after the
// other, on one session and one connection; it says so after the first result. When it is stopped it calls once more,
// and on until there were four calls after that first one, however slow the machine is; then it tells what it met.

import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Measured } from './kit.ts'

const [url = '', key = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

interface Reply {
  readonly status: number
  readonly sessionId: string | undefined
  readonly text: string
}

function post(body: object, sessionId?: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method: 'POST',
        agent,
        timeout: 30_000,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${key}`,
          ...(sessionId === undefined ? {} : { 'mcp-session-id': sessionId, 'mcp-protocol-version': '2025-11-25' })
        }
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => (text += part))
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, sessionId: response.headers['mcp-session-id']?.toString(), text })
        )
        response.once('error', reject)
      }
    )
    outgoing.once('timeout', () => outgoing.destroy(new Error('no answer within 30 s')))
    outgoing.once('error', reject)
    outgoing.end(JSON.stringify({ jsonrpc: '2.0', ...body }))
  })
}

const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'neighbour', version: '1' } }
const { sessionId } = await post({ id: 0, method: 'initialize', params: initialize })
await post({ method: 'notifications/initialized' }, sessionId)

const leastCalls = 4
const times: number[] = []
const failures: string[] = []
let meanwhile = 0
let stopped = false
process.once('disconnect', () => process.exit(1))
process.once('message', () => {
  stopped = true
})
for (let id = 1, isLast = false; !isLast; id++) {
  isLast = stopped && times.length >= leastCalls - 1
  const began = performance.now()
  const params = { name: 'calm__echo', arguments: { id } }
  const failure = await post({ id, method: 'tools/call', params }, sessionId).then(
    ({ status, text }) => (status === 200 && text.includes('"result"') ? undefined : `${status} ${text.slice(0, 200)}`),
    (error: unknown) => String(error)
  )
  if (failure !== undefined && failures.length < 10) failures.push(failure)
  if (id > 1 && failure === undefined && !stopped) meanwhile++
  if (id > 1) times.push(performance.now() - began)
  else process.send?.('started')
  await wait(20)
}
times.sort((a, b) => a - b)
const at = (part: number): number => Math.round(times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0)
const measured: Measured = {
  calls: times.length,
  meanwhile,
  failures,
  medianMs: at(0.5),
  p99Ms: at(0.99),
  longestMs: at(1)
}
process.send?.(measured, () => process.exit(0))
