// Process of its own: a tenant that takes whatever it gets. `node noise.ts URL KEY KIND CONNECTIONS`; the message `go`
// begins, `rest` ends and is answered by what became of its requests. It has the lowest priority: what it takes of the
// core of the load would look like what it takes of the gateway.

import { setPriority } from 'node:os'
import { createCaller } from '../load/connection.ts'
import { headerOf } from '../load/wire.ts'
import { initializeParams, request, toolCall } from '../messages.ts'

const [target = '', key = '', kind = '', connections = '64'] = process.argv.slice(2)
setPriority(19)
const url = new URL(target)
/** Half a MiB each. */
const longText = 'x'.repeat(524_288)

function bytes(method: string, body: string, session?: string): Buffer {
  const fields = {
    host: url.host,
    authorization: `Bearer ${key}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...(session !== undefined && {
      'mcp-session-id': session,
      'mcp-protocol-version': initializeParams.protocolVersion
    }),
    'content-length': String(Buffer.byteLength(body))
  }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${url.pathname} HTTP/1.1\r\n${head.join('')}\r\n${body}`)
}

const initialize = bytes('POST', request(1, 'initialize', initializeParams))
const counts = { answered: 0, refused: 0 }
const state = { going: false }

async function talk(): Promise<void> {
  const caller = createCaller(url)
  const ask = async (message: Buffer): Promise<string> => {
    const { head } = await caller.ask(message)
    counts[head.startsWith('HTTP/1.1 2') ? 'answered' : 'refused']++
    return head
  }
  const open = async () => headerOf(await ask(initialize), 'mcp-session-id')
  // A refusal for the rate has not ended it, and its place is taken until something has.
  const end = async (session: string): Promise<void> => {
    const head = await ask(bytes('DELETE', '', session))
    if (head.startsWith('HTTP/1.1 429')) await end(session)
  }
  try {
    let session = kind === 'sessions' ? undefined : await open()
    while (state.going) {
      if (kind === 'sessions') {
        session = await open()
        if (session !== undefined) await end(session)
      } else if (session === undefined) session = await open()
      else
        await ask(
          kind === 'long'
            ? bytes('POST', request(1, 'tools/call', { name: 'echo', arguments: { text: longText } }), session)
            : bytes('POST', toolCall(1, 'echo'), session)
        )
    }
    if (kind !== 'sessions' && session !== undefined) await end(session)
  } finally {
    caller.end()
  }
}

/** Whoever is cut off comes again. */
const keepTalking = async (): Promise<void> => {
  while (state.going) await talk().catch(() => counts.refused++)
}

let all: Promise<unknown> = Promise.resolve()
process.once('disconnect', () => process.exit())
process.on('message', (word) => {
  state.going = word === 'go'
  if (state.going) {
    Object.assign(counts, { answered: 0, refused: 0 })
    all = Promise.all(Array.from({ length: Number(connections) }, keepTalking))
  } else void all.then(() => process.send?.({ ...counts }))
})
process.send?.('ready')
