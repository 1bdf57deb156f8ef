// Random UUIDs, for requests (RFC 9562 section 5.4). What `randomUUID` of Node returns is put together of twenty
// pieces, and V8 keeps it as a tree of them: whoever writes such an id later, into a header or a line of the log, walks
// through the tree, which takes longer than all else that is done with it.

import { randomFillSync } from 'node:crypto'

const digits = Buffer.from('0123456789abcdef')
const form = '00000000-0000-4000-8000-000000000000'
/** The places of the first of the two digits of each byte. */
const firsts = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const [versionAt, variantAt] = [14, 19]

/** @returns what makes another id each time */
export function createUuids(): () => string {
  // For so many at once that the draw costs nothing.
  const random = Buffer.alloc(256 * firsts.length)
  const text = Buffer.from(form)
  let at = random.length
  return () => {
    if (at === random.length) {
      randomFillSync(random)
      at = 0
    }
    for (const first of firsts) {
      const byte = random[at++] ?? 0
      text[first] = digits[byte >> 4] ?? 0
      text[first + 1] = digits[byte & 15] ?? 0
    }
    text[versionAt] = digits[4] ?? 0
    text[variantAt] = digits[8 + (((random[at - 8] ?? 0) >> 4) & 3)] ?? 0
    return text.toString('latin1')
  }
}
