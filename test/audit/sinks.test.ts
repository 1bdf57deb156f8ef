// Audit records at a syslog server and at a collector: to the letter, in their order, and all of them, also where one of
// these was away; no call waits for them, unless its tenant requires its audit log.

import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { readFileSync } from 'node:fs'
import { createServer as createTls } from 'node:tls'
import { createServer as createHttp, type IncomingHttpHeaders } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { freePort } from '../kit/free-port.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { createSyslogSink } from '../../src/audit/syslog.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { parse, report, type AuditRecord } from './kit.ts'

/** A syslog server that reads entries as RFC 6587 frames them. */
async function syslogServer(t: Test, given?: string) {
  const sockets = new Set<Socket>()
  const entries: string[] = []
  let reads = true
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    if (!reads) return void socket.pause()
    let bytes = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      for (;;) {
        const space = bytes.indexOf(' ')
        const length = Number(bytes.subarray(0, space).toString())
        if (space < 1 || bytes.length < space + 1 + length) return
        entries.push(bytes.subarray(space + 1, space + 1 + length).toString())
        bytes = bytes.subarray(space + 1 + length)
      }
    })
  })
  const listen = async (place: string | number): Promise<void> => {
    if (typeof place === 'string') server.listen(place)
    else server.listen(place, '127.0.0.1')
    await once(server, 'listening')
  }
  // It comes back on the port that it had.
  await listen(given ?? (await freePort()))
  const address = server.address() as AddressInfo | string
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  t.teardown(stop)
  return {
    to: typeof address === 'string' ? `unix:${address}` : `tcp://127.0.0.1:${address.port}`,
    entries,
    stop,
    start: () => listen(typeof address === 'string' ? address : address.port),
    /** It accepts connections, and reads nothing. */
    stopReading() {
      reads = false
    }
  }
}

interface LogRecord {
  readonly timeUnixNano: string
  readonly eventName: string
  readonly body: { readonly stringValue: string }
}

async function collector(t: Test) {
  const requests: Array<{ headers: IncomingHttpHeaders; records: LogRecord[] }> = []
  const answers: number[] = []
  const server = createHttp((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => (text += part))
    request.on('end', () => {
      const status = answers.shift() ?? 200
      const { resourceLogs } = JSON.parse(text) as { resourceLogs: [{ scopeLogs: [{ logRecords: LogRecord[] }] }] }
      if (status === 200) requests.push({ headers: request.headers, records: resourceLogs[0].scopeLogs[0].logRecords })
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/logs`,
    requests,
    records: () => requests.flatMap(({ records }) => records),
    /** Statuses of the next answers. */
    answers
  }
}

const call = (acme: AcmeGateway) =>
  modernRequest(acme.url(), 'tools/call', { name: 'echo', arguments: { of: 'ada' } }, { token: keyOf.ada })
const linesIn = (entries: readonly string[]): string[] =>
  entries.map((entry) => entry.slice(entry.indexOf('{'))).filter((line) => line.includes('"acme/'))
const calls = (lines: readonly string[]): AuditRecord[] => parse(lines.join('\n')).filter(({ kind }) => kind === 'call')

for (const socket of ['TCP', 'a Unix socket'])
  t.test(
    `over ${socket} an entry of RFC 5424 has each record to the letter, so that they can be verified`,
    async (t) => {
      const server = await syslogServer(
        t,
        socket === 'TCP' ? undefined : join(await mkdtemp(join(tmpdir(), 'syslog-')), 'sock')
      )
      const acme = await acmeGateway(t, { top: { audit: { syslog: { to: server.to } } } })
      for (let n = 0; n < 3; n++) t.match(await call(acme), { status: 200 })
      await acme.close()
      await until('it has read all', () => linesIn(server.entries).some((line) => line.includes('"kind":"end"')))
      const [first = ''] = server.entries
      t.match(first, /^<110>1 \d{4}-\d\d-\d\dT[\d:.]+Z \S+ gatehouse \d+ begin - \{"chain":/)
      const lines = linesIn(server.entries)
      t.equal(calls(lines).length, 3)
      t.same((await report(lines.join('\n'), Date.now())).problems, [])
    }
  )

t.test('over TLS a server is asked for by its name, and one at an address by none', async (t) => {
  const names: Array<string | undefined> = []
  const file = (name: string): Buffer => readFileSync(new URL(`../kit/tls/${name}`, import.meta.url))
  const server = createTls({
    key: file('localhost.key'),
    cert: file('localhost.crt'),
    SNICallback(name, done) {
      names.push(name)
      done(null)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const line = '{"chain":"a/b-1","seq":0,"time":"2026-07-28T00:00:00.000Z","kind":"begin"}\n'
  const warnings: Error[] = []
  const onWarning = (warning: Error): void => void warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  for (const [host, told] of [
    ['localhost', ['localhost']],
    ['127.0.0.1', []]
  ] as const) {
    names.length = 0
    const sink = createSyslogSink({ to: `tls://${host}:${port}`, facility: 13 }, steadyClock)
    // Nobody vouches for the certificate of the test.
    await t.rejects(sink.write(line), /certificate/)
    t.same(names, told, host)
    sink.close()
  }
  t.same(warnings, [], 'an address as the name of a server is deprecated')
})

t.test('a collector gets them as log records, with the headers that the configuration names', async (t) => {
  const server = await collector(t)
  server.answers.push(503)
  const acme = await acmeGateway(t, {
    top: { audit: { otlp: { url: server.url, headers: { Authorization: 'Bearer collector' } } } }
  })
  for (let n = 0; n < 3; n++) await call(acme)
  // A batch whose answer was late is sent again.
  await until('all are there', () => {
    const told = server.records().filter(({ eventName }) => eventName === 'gatehouse.audit.call')
    return new Set(told.map(({ body }) => body.stringValue)).size === 3
  })
  await acme.close()
  t.equal(server.requests[0]?.headers.authorization, 'Bearer collector')
  const lines = server.records().map(({ body }) => body.stringValue)
  t.same((await report(lines.filter((line) => line.includes('"acme/')).join('\n'), Date.now())).problems, [])
  const [record] = server.records()
  t.equal(
    Number(BigInt(record?.timeUnixNano ?? 0) / 1_000_000n),
    Date.parse(String(parse(record?.body.stringValue ?? '')[0]?.['time']))
  )
  t.match(
    acme.log.find(({ msg }) => msg === 'audit records cannot be written'),
    { place: 'otlp' }
  )
})

t.test('while a syslog server is away calls go on; what waits is sent when it is back', async (t) => {
  const server = await syslogServer(t)
  const acme = await acmeGateway(t, { top: { audit: { store: false, syslog: { to: server.to } } } })
  t.match(await call(acme), { status: 200 })
  await until('it has the first call', () => calls(linesIn(server.entries)).length === 1)
  await server.stop()
  for (let n = 0; n < 5; n++) t.match(await call(acme), { status: 200, json: { result: {} } })
  await until('it is known to be away', () => acme.log.some(({ place }) => place === 'syslog'))
  await server.start()
  await until('it has all of them', () => new Set(calls(linesIn(server.entries)).map(({ seq }) => seq)).size === 6)
  t.same((await report(linesIn(server.entries).join('\n'), Date.now())).problems, [])
})

t.test('no call waits for a syslog server that reads nothing, unless its tenant requires its audit log', async (t) => {
  const server = await syslogServer(t)
  server.stopReading()
  // What is sent over TCP is taken by the kernel; over TLS it is held up until the server has greeted.
  const to = server.to.replace('tcp:', 'tls:')
  /** Was it given up before the call was answered? That takes 5 s. */
  const isGivenUpBefore = async (required: boolean): Promise<boolean> => {
    const acme = await acmeGateway(t, { audit: { required }, top: { audit: { store: false, syslog: { to } } } })
    t.match(await call(acme), { status: 200 })
    return acme.log.some(({ place }) => place === 'syslog')
  }
  // A busy machine may take as long for a call, but hardly three times.
  let waited = 0
  while (waited < 3 && (await isGivenUpBefore(false))) waited++
  t.ok(waited < 3)
  t.ok(await isGivenUpBefore(true), 'the control')
})

t.test('a tenant that requires its audit log gets no call through while the syslog server is away', async (t) => {
  const server = await syslogServer(t)
  await server.stop()
  const acme = await acmeGateway(t, { audit: { required: true }, top: { audit: { syslog: { to: server.to } } } })
  await call(acme)
  await until('it is known to be away', () => acme.log.some(({ place }) => place === 'syslog'))
  const refused = await call(acme)
  t.match(refused.json, { error: { message: /^The audit log of this tenant cannot be written/ } })
  await server.start()
  await until('calls are let through again', async () => (await call(acme)).status === 200)
})
