// Process of its own: the load. A closed loop of small tool calls, each worker with a session of its own; every answer
// is checked. Takes a `Job` as a message and sends back a `Load`.

import { Pool, type Dispatcher } from 'undici'
import { cpuMs } from './cpu.ts'
import { quantile } from './figures.ts'
import { initializeParams, toolCall, toolText } from './messages.ts'

export interface Job {
  readonly url: string
  readonly token: string
  readonly workers: number
  /** Runs before anything counts: sockets open, code gets hot. */
  readonly warmMs: number
  readonly ms: number
  /** The process whose CPU time is counted. */
  readonly pid: number | undefined
}

export interface Load {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the process in the middle, while it served these requests. */
  readonly cpuMs: number
}

interface Answer {
  readonly status: number
  readonly sessionId: string | undefined
  readonly text: string
}

/** By URL; sessions outlive a round, sockets do not. */
const known = new Map<string, Promise<Worker[]>>()

interface Worker {
  readonly headers: string[]
  readonly tool: string
}

function post(pool: Pool, path: string, headers: string[], body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let status = 0
    let sessionId: string | undefined
    let text = ''
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_controller, statusCode, head) {
        status = statusCode
        sessionId = head['mcp-session-id'] as string | undefined
      },
      onResponseData(_controller, chunk) {
        text += chunk.toString()
      },
      onResponseEnd() {
        resolve({ status, sessionId, text })
      },
      onResponseError(_controller, error) {
        reject(error)
      }
    }
    pool.dispatch({ path, method: 'POST', headers, body }, handler)
  })
}

/** initialize, notifications/initialized, tools/list: what any client does, and how it learns the tool's name. */
async function open(pool: Pool, path: string, token: string): Promise<Worker> {
  const plain = [
    'content-type',
    'application/json',
    'accept',
    'application/json, text/event-stream',
    'authorization',
    `Bearer ${token}`
  ]
  const hello = await post(
    pool,
    path,
    plain,
    JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: initializeParams })
  )
  if (hello.status !== 200 || hello.sessionId === undefined)
    throw new Error(`initialize: ${hello.status} ${hello.text}`)
  const headers = [...plain, 'mcp-session-id', hello.sessionId, 'mcp-protocol-version', '2025-11-25']
  await post(pool, path, headers, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  const list = await post(pool, path, headers, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/list' }))
  const tool = /"tools":\[\{[^}]*?"name":"([^"]+)"/.exec(list.text)?.[1]
  if (tool === undefined) throw new Error(`tools/list: ${list.status} ${list.text}`)
  return { headers, tool }
}

async function run({ url, token, workers, warmMs, ms, pid }: Job): Promise<Load> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections: workers, pipelining: 1 })
  let sessions = known.get(url)
  if (sessions === undefined)
    known.set(url, (sessions = Promise.all(Array.from({ length: workers }, () => open(pool, pathname, token)))))
  const ready = await sessions

  let lastId = 0
  let counting = false
  const stop = new AbortController()
  const latencies: number[] = []
  const work = ready.map(async ({ headers, tool }) => {
    while (!stop.signal.aborted) {
      const id = ++lastId
      const startedAt = performance.now()
      const { status, text } = await post(pool, pathname, headers, toolCall(id, tool))
      if (status !== 200 || !text.includes(`"id":${id},`) || !text.includes(toolText))
        throw new Error(`tools/call: ${status} ${text}`)
      if (counting) latencies.push(performance.now() - startedAt)
    }
  })
  const measure = async (): Promise<Load> => {
    await wait(warmMs)
    const cpuBefore = pid === undefined ? 0 : cpuMs(pid)
    const startedAt = performance.now()
    counting = true
    await wait(ms)
    counting = false
    const cpu = pid === undefined ? 0 : cpuMs(pid) - cpuBefore
    const seconds = (performance.now() - startedAt) / 1000
    stop.abort()
    return {
      requests: latencies.length,
      seconds,
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      cpuMs: cpu
    }
  }
  try {
    const [load] = await Promise.all([measure(), ...work])
    return load
  } finally {
    stop.abort()
    await pool.destroy()
  }
}

const wait = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

process.once('disconnect', () => process.exit())
process.on('message', (job) => {
  run(job as Job).then(
    (load) => process.send?.({ load }),
    (error: unknown) => process.send?.({ error: String(error) })
  )
})
