// Ids of requests to an upstream. On a connection without a stream for each call an answer belongs to the call whose id
// it has: whoever can write one line of a server's output could answer the next call of anybody, if ids were counted.

/** Servers that keep an id in 32 bits answer a larger one with another id. */
const mask = 0x7fff_ffff

/**
 * @param random between 0 and 1
 * @returns gives a positive integer below 2^31, in a secret order: none comes twice in the life of a connection
 * (2025-11-25 basic "Requests": an id MUST NOT have been used before in the session)
 */
export function createRequestIds(random: () => number): () => number {
  const secret = (): number => Math.floor(random() * 2 ** 32)
  const rounds = Array.from({ length: 4 }, () => ({ add: secret(), factor: secret() | 1 }))
  let count = secret() & mask

  return function next(): number {
    count = (count + 1) & mask
    let id = count
    // Each step can be reversed, so that different counts give different ids: a sum, a product with an odd number, and
    // the upper bits on the lower ones.
    for (const { add, factor } of rounds) {
      id = Math.imul((id + add) & mask, factor) & mask
      id ^= id >>> 16
    }
    // Many servers take 0 for no id.
    return id === 0 ? next() : id
  }
}
