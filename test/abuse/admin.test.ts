// Attack: on the listener of the admin API, beside which clients are served by the same process. Requests sent without
// waiting for an answer, and bodies in pieces of one byte, of an administrator and of somebody without a key.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { adminKeys, adminSection } from '../kit/admin.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked } from './kit.ts'

/** Three times what it takes to read what comes; to work on all of it takes one to two seconds. */
const maxCpuMs = 500

const started = attacked({ teardown: (run) => t.teardown(run) }, { top: { admin: adminSection } }).then(
  async (gateway) => {
    const { adminUrl } = await gateway.logged('the admin API', (line) => line['adminUrl'] !== undefined)
    return { gateway, port: Number(new URL(String(adminUrl)).port) }
  }
)

const head = (port: number, line: string, key: string | undefined): string =>
  `${line} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${key === undefined ? '' : `Authorization: Bearer ${key}\r\n`}`

/** That the process has taken so far. */
const cpuMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const answersIn = (text: string): number => text.split('HTTP/1.1 ').length - 1

for (const [who, key, otherKey, statuses] of [
  // Where pieces are left unread, the connection is reset, with or without the answer.
  ['somebody without a key', undefined, undefined, [401, 429, 0]],
  // The requests of a key are counted: those of one test are not to use up what the next one needs.
  ['an administrator', adminKeys.auditor, adminKeys.platform, [413, 0]]
] as const) {
  t.test(`of hundreds of requests that ${who} sends at once, the first is answered`, async (t) => {
    const { gateway, port } = await started
    const neighbour = await gateway.neighbour()
    const one = `${head(port, 'GET /v1/limits', key)}\r\n`
    const before = cpuMs(gateway.pid)
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = dial(port)
        socket.write(one.repeat(900))
        const text = await untilClosed(socket, 20_000)
        t.ok(answersIn(text) <= 1, text.slice(0, 500))
      })
    )
    const spentMs = cpuMs(gateway.pid) - before
    t.ok(spentMs < maxCpuMs, `${spentMs} ms of CPU`)
    t.same((await neighbour.stop()).failures, [])
  })

  t.test(`a body that ${who} sends in thousands of tiny pieces is hardly worked on`, async (t) => {
    const { gateway, port } = await started
    const neighbour = await gateway.neighbour()
    const fields = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    const before = cpuMs(gateway.pid)
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = dial(port)
        socket.write(`${head(port, 'PUT /v1/tenants/new', otherKey)}${fields}${'1\r\n \r\n'.repeat(30_000)}`)
        const { status, head: given } = readRawResponse(await untilClosed(socket, 20_000))
        t.ok((statuses as readonly number[]).includes(status), given)
      })
    )
    const spentMs = cpuMs(gateway.pid) - before
    t.ok(spentMs < maxCpuMs, `${spentMs} ms of CPU`)
    t.same((await neighbour.stop()).failures, [])
  })
}

t.test('requests one after the other, and a body in a few tiny pieces, are answered on one connection', async (t) => {
  const { port } = await started
  const socket = dial(port)
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString()))
  for (let sent = 1; sent <= 10; sent++) {
    socket.write(`${head(port, 'GET /v1/limits', adminKeys.viewer)}\r\n`)
    await until('the answer', () => answersIn(text) === sent)
  }
  t.equal(text.split('HTTP/1.1 200').length - 1, 10, text)
  const fields = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  socket.write(`${head(port, 'PUT /v1/tenants/new', adminKeys.platform)}${fields}1\r\n[\r\n1\r\n]\r\n0\r\n\r\n`)
  await until('the answer', () => answersIn(text) === 11)
  t.match(text, /HTTP\/1\.1 4(?:00|22|28)/, 'it is read whole, and judged')
  socket.destroy()
})
