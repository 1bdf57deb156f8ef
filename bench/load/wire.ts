// HTTP/1.1 as far as the benches need it, over bare sockets: what generates load and what answers it must cost less
// than what stands between them. Reads whole messages only, believes its peer, and knows no trailers.

const headEnd = Buffer.from('\r\n\r\n')
const empty = Buffer.alloc(0)

/**
 * @param onMessage start line and header fields of a message, and its body, which is good until the call returns
 * @returns takes what a socket has read; keeps a copy of what is no whole message yet
 */
export function createReader(onMessage: (head: string, body: Buffer) => void): (piece: Buffer) => void {
  let rest = empty
  return (piece) => {
    const data = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    let at = 0
    while (at < data.length) {
      const end = data.indexOf(headEnd, at)
      if (end === -1) break
      const head = data.toString('latin1', at, end)
      const message = readBody(head, data, end + headEnd.length)
      if (message === undefined) break
      at = message.end
      onMessage(head, message.body)
    }
    rest = at === data.length ? empty : Buffer.from(data.subarray(at))
  }
}

function readBody(head: string, data: Buffer, start: number): { body: Buffer; end: number } | undefined {
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? []
  if (length !== undefined) {
    const end = start + Number(length)
    return end > data.length ? undefined : { body: data.subarray(start, end), end }
  }
  return /\r\ntransfer-encoding: *chunked/i.test(head) ? readChunks(data, start) : { body: empty, end: start }
}

function readChunks(data: Buffer, start: number): { body: Buffer; end: number } | undefined {
  const pieces: Buffer[] = []
  for (let at = start; ;) {
    const line = data.indexOf(13, at)
    if (line === -1) return undefined
    const size = Number.parseInt(data.toString('latin1', at, line), 16)
    const from = line + 2
    at = from + size + 2
    if (at > data.length) return undefined
    if (size === 0) return { body: pieces.length === 1 ? (pieces[0] ?? empty) : Buffer.concat(pieces), end: at }
    pieces.push(data.subarray(from, from + size))
  }
}

/** The value of a header field of `head`, or undefined. */
export function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(head)?.[1]
}
