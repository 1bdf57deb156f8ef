// A DNS server on loopback (RFC 1035): it says what the test says, or nothing at all.

import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import type { Teardown } from './until.ts'

export interface NameServer {
  /** For `servers` of a resolver. */
  readonly address: string
  /** Names that were asked for their IPv4 addresses, once for each question. */
  readonly asked: readonly string[]
}

/**
 * @param answerTo addresses of a name, those of IPv6 with all their digits; none: there is no such name; undefined: it never answers.
 * It is asked for each family.
 */
export async function nameServer(
  t: Teardown,
  answerTo: (name: string, family: 4 | 6) => readonly string[] | undefined
): Promise<NameServer> {
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = questionOf(query)
    const type = query.readUInt16BE(end - 4)
    if (type === 1) asked.push(name)
    const addresses = answerTo(name, type === 1 ? 4 : 6)
    if (addresses === undefined) return
    const own = addresses.filter((address) => isIPv4(address) === (type === 1))
    socket.send(answer(query.subarray(0, end), own, addresses.length > 0), from.port, from.address)
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

/** Header and question come back; each answer names the question by a pointer, and is not to be kept. */
function answer(question: Buffer, addresses: readonly string[], exists: boolean): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(exists ? 0x8180 : 0x8183, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt16BE(0, 10)
  const records = addresses.map((address) =>
    isIPv4(address)
      ? Buffer.from([...Buffer.from('c00c00010001000000000004', 'hex'), ...address.split('.').map(Number)])
      : Buffer.from(`c00c001c0001000000000010${address.split(':').join('')}`, 'hex')
  )
  return Buffer.concat([head, ...records])
}
