// Bytes that come in pieces, joined once. Neither many pieces nor tiny ones take much more memory than the bytes.

export interface ByteChunks {
  readonly size: number
  add(chunk: Buffer): void
  /** All of it as one buffer, after which there is nothing left. */
  take(): Buffer
}

/** Each Buffer takes about a hundred bytes of its own, which a peer that writes byte by byte would multiply. */
const mergeAt = 1_024

const nothing = Buffer.alloc(0)

export function createByteChunks(): ByteChunks {
  let parts: Buffer[] = []
  /** How many at the front are merged already: merging those again would be quadratic. */
  let merged = 0
  let size = 0
  return {
    get size() {
      return size
    },
    add(chunk) {
      parts.push(chunk)
      size += chunk.length
      if (parts.length - merged < mergeAt) return
      parts = [...parts.slice(0, merged), Buffer.concat(parts.slice(merged))]
      merged = parts.length
    },
    take() {
      const [first] = parts
      const whole = parts.length > 1 ? Buffer.concat(parts, size) : (first ?? nothing)
      parts = []
      merged = 0
      size = 0
      return whole
    }
  }
}
