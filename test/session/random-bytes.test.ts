// Random bytes out of a block: none is given out twice, and nobody can change those of another.

import t from 'tap'
import { createRandomBytes } from '../../src/session/random-bytes.ts'

t.test('no id comes twice, across blocks, and all have their length', async (t) => {
  const randomBytes = createRandomBytes()
  const sizes = Array.from({ length: 4_000 }, (_, at) => 9 + (at % 24))
  const ids = new Set(
    sizes.map((size) => {
      const bytes = randomBytes(size)
      if (bytes.length !== size) t.fail(`${bytes.length} bytes instead of ${size}`)
      const id = bytes.toString('base64url')
      bytes.fill(1)
      return id
    })
  )
  t.equal(ids.size, sizes.length)
  t.equal(randomBytes(10_000).length, 10_000)
  t.notOk(
    [...ids].some((id) => /^A{8}|AAAAAAAA$|(?:AQEB){2}/.test(id)),
    'no byte was overwritten'
  )
})
