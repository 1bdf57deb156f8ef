// Bytes that come in pieces, joined once. Neither many pieces nor tiny ones cost more than a small multiple of the bytes.

export interface Pile {
  readonly size: number
  add (chunk: Buffer): void
  /** All of it as one buffer, after which the pile is empty. */
  take (): Buffer
}

/** Each Buffer costs about a hundred bytes of its own, which a peer that writes byte by byte would make us pay for each byte. */
const mergeAt = 1_024

const nothing = Buffer.alloc(0)

export function createPile (): Pile {
  let parts: Buffer[] = []
  /** How many at the front are merged ones already: merging those again would be quadratic. */
  let merged = 0
  let size = 0
  return {
    get size () { return size },
    add (chunk) {
      parts.push(chunk)
      size += chunk.length
      if (parts.length - merged < mergeAt) return
      parts = [...parts.slice(0, merged), Buffer.concat(parts.slice(merged))]
      merged = parts.length
    },
    take () {
      const [first] = parts
      const whole = parts.length > 1 ? Buffer.concat(parts, size) : first ?? nothing
      parts = []
      merged = 0
      size = 0
      return whole
    }
  }
}
