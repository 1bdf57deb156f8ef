// An upstream that is down and comes back, on real sockets: in every era its tools answer that it is away, for how long
// and when it is tried again, as long as they are remembered; and the first call after its return reaches it.

import { rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stdioServer } from '../abuse/kit.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { startModern } from '../kit/modern-server.ts'
import { freePort } from '../kit/free-port.ts'
import { descendants, signalAll } from './kit/process.ts'

type Call = (name: string) => Promise<{ result?: unknown; error?: { message: string; data: Record<string, unknown> } }>

/** A port on which a proxy to the server listens, or nobody. */
async function door(t: { teardown(run: () => unknown): void }, target: string) {
  const port = await freePort()
  let server: Server | undefined
  const close = async (): Promise<void> => {
    const closing = server
    server = undefined
    if (closing === undefined) return
    const closed = once(closing, 'close')
    closing.close()
    closing.closeAllConnections()
    await closed
  }
  t.teardown(close)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close,
    async open(): Promise<void> {
      server = createServer((request, response) => {
        void (async () => {
          const chunks: Buffer[] = []
          for await (const chunk of request) chunks.push(chunk as Buffer)
          const headers = new Headers()
          for (const [name, value] of Object.entries(request.headers))
            if (!['host', 'connection', 'content-length', 'transfer-encoding'].includes(name))
              headers.set(name, String(value))
          const body = request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}
          const answer = await fetch(target, { method: request.method ?? 'GET', headers, ...body })
          const [type = 'text/plain', session] = ['content-type', 'mcp-session-id'].map((name) =>
            answer.headers.get(name)
          )
          response.writeHead(answer.status, {
            'content-type': String(type),
            ...(typeof session === 'string' ? { 'mcp-session-id': session } : {})
          })
          for await (const chunk of answer.body ?? []) response.write(chunk)
          response.end()
        })().catch(() => response.destroy())
      })
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    }
  }
}

interface House {
  readonly files: object
  readonly other: object
  goAway(): Promise<void>
  comeBack(): Promise<void>
}

const houses: Record<string, (t: Test) => Promise<House>> = {
  async 'over stdio'(t) {
    const mark = join(t.testdir({}), 'away')
    const { command, args } = stdioServer() as { command: string; args: string[] }
    const before = descendants(process.pid)
    return {
      files: { command: '/bin/sh', args: ['-c', 'test -e "$0" && exit 3; exec "$@"', mark, command, ...args] },
      other: stdioServer(),
      async goAway() {
        await writeFile(mark, '')
        const children = descendants(process.pid).filter((pid) => !before.includes(pid))
        signalAll(children, 'SIGKILL')
      },
      comeBack: () => rm(mark)
    }
  },
  async 'of 2026-07-28 over HTTP'(t) {
    const server = await startModern()
    t.teardown(() => server.close())
    const front = await door(t, server.url)
    await front.open()
    return { files: { url: front.url }, other: { url: server.url }, goAway: front.close, comeBack: front.open }
  }
}

const callersOf = async (url: string): Promise<Record<string, Call>> => {
  const session = await legacyClient(url, key)
  return {
    '2025-11-25': async (name) => (await session.request('tools/call', { name, arguments: { a: 1 } })).json,
    '2026-07-28': async (name) =>
      (await modernRequest(url, 'tools/call', { name, arguments: { a: 1 } }, { token: key })).json
  }
}
const away = {
  message: /^Upstream files .*It has been away for \d+ s\. It is tried again in \d+ s/,
  data: { reason: 'upstream_unavailable', upstream: 'files', retriedInMs: Number }
}

for (const [what, house] of Object.entries(houses)) {
  t.test(`a server ${what} goes away and comes back`, { timeout: 290_000 }, async (t) => {
    const { files, other, goAway, comeBack } = await house(t)
    const served = await gateway(t, { upstreams: { files, other } })
    const session = await legacyClient(served.url(), key)
    const callers = await callersOf(served.url())
    const listed = async (): Promise<string> => (await session.request('tools/list')).text
    t.match(await listed(), 'files__echo')
    for (const [era, call] of Object.entries(callers)) t.ok((await call('files__echo')).result, era)

    await goAway()
    await until('it is left out of the lists', async () => !(await listed()).includes('files__echo'))
    for (const [era, call] of Object.entries(callers)) {
      await until(`the call says for how long it has been away (${era})`, async () =>
        /away for \d+ s/.test((await call('files__echo')).error?.message ?? '')
      )
      const began = performance.now()
      const { error } = await call('files__echo')
      t.match(error, away, era)
      t.ok(performance.now() - began < 10_000, 'and says it soon')
      t.notMatch(error?.message, /127\.0\.0\.1/, 'not where it is')
      t.match((await call('files__nothing')).error, { data: { reason: 'upstream_unavailable' } }, 'perhaps it is new')
    }

    await comeBack()
    for (const [era, call] of Object.entries(callers))
      await until(`a call reaches it (${era})`, async () => (await call('files__echo')).result !== undefined)
    await until('it is listed again', async () => (await listed()).includes('files__echo'))
    const { error } = (await callers['2025-11-25']?.('files__nothing')) ?? {}
    t.match(error, { message: 'Unknown tool: files__nothing' }, 'what it never had is unknown')
  })
}

t.test('a call on a session that the server is away from says the same', async (t) => {
  const server = await startUpstream()
  t.teardown(() => server.close())
  const front = await door(t, server.url)
  await front.open()
  const served = await gateway(t, { upstreams: { files: { url: front.url } } })
  const call = (await callersOf(served.url()))['2025-11-25'] as Call
  t.ok((await call('files__echo')).result)
  await front.close()
  await until('it says for how long', async () =>
    /away for \d+ s/.test((await call('files__echo')).error?.message ?? '')
  )
  t.match((await call('files__echo')).error, { message: away.message, data: { reason: 'upstream_unavailable' } })
  await front.open()
  t.ok((await call('files__echo')).result, 'and the next one after its return reaches it')
})
