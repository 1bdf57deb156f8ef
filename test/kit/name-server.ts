// A DNS server on loopback (RFC 1035): it says what the test says, or nothing at all.

import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import type { Teardown } from './until.ts'

export interface NameServer {
  /** For `servers` of a resolver. */
  readonly address: string
  /** Names that were asked for their IPv4 addresses, once for each question, however often that is sent. */
  readonly asked: readonly string[]
}

interface NameServerOptions {
  /** What a name is another name of (CNAME); its addresses are those of that one. */
  readonly aliasOf?: (name: string) => string | undefined
}

/**
 * @param answerTo addresses of a name, those of IPv6 with all their digits; none: there is no such name; undefined: it never answers.
 * It is asked for each family.
 */
export async function nameServer(
  t: Teardown,
  answerTo: (name: string, family: 4 | 6) => readonly string[] | undefined,
  { aliasOf = () => undefined }: NameServerOptions = {}
): Promise<NameServer> {
  const asked: string[] = []
  /** A question that is not answered in time is sent again, with the id of before. */
  const known = new Set<string>()
  const socket = createSocket('udp4')
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = questionOf(query)
    const type = query.readUInt16BE(end - 4)
    const question = `${query.readUInt16BE(0)} ${name}`
    if (type === 1 && !known.has(question)) asked.push(name)
    if (type === 1) known.add(question)
    const alias = aliasOf(name)
    const addresses = answerTo(alias ?? name, type === 1 ? 4 : 6)
    if (addresses === undefined) return
    const own = addresses.filter((address) => isIPv4(address) === (type === 1))
    socket.send(answer(query.subarray(0, end), own, { exists: addresses.length > 0, alias }), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, asked }
}

function questionOf(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 }
}

/** Header and question come back; each answer names the question or its alias by a pointer, and is not to be kept. */
function answer(
  question: Buffer,
  addresses: readonly string[],
  { exists, alias }: { readonly exists: boolean; readonly alias: string | undefined }
): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(exists ? 0x8180 : 0x8183, 2)
  head.writeUInt16BE(addresses.length + (alias === undefined ? 0 : 1), 6)
  head.writeUInt16BE(0, 10)
  const target = Buffer.concat([
    ...(alias ?? '').split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0])
  ])
  const cname = Buffer.concat([Buffer.from('c00c000500010000000000', 'hex'), Buffer.from([target.length]), target])
  // The alias stands in the first record, behind twelve bytes.
  const owner = alias === undefined ? 'c00c' : (0xc000 + head.length + 12).toString(16)
  const records = addresses.map((address) =>
    isIPv4(address)
      ? Buffer.from([...Buffer.from(`${owner}00010001000000000004`, 'hex'), ...address.split('.').map(Number)])
      : Buffer.from(`${owner}001c0001000000000010${address.split(':').join('')}`, 'hex')
  )
  return Buffer.concat([head, ...(alias === undefined ? [] : [cname]), ...records])
}
