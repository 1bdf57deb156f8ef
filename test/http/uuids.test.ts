// Ids of requests are random UUIDs of version 4 (RFC 9562 section 5.4), each given once.

import t from 'tap'
import { createUuids } from '../../src/gateway/uuids.ts'

const idForm = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

await t.test('each is a UUID, and another one', async (t) => {
  const newId = createUuids()
  // More than random bytes are drawn for at once.
  const ids = Array.from({ length: 1_000 }, newId)
  t.same(
    ids.filter((id) => !idForm.test(id)),
    []
  )
  t.equal(new Set(ids).size, ids.length)
})

await t.test('every digit that may differ does', async (t) => {
  const newId = createUuids()
  const ids = Array.from({ length: 1_000 }, newId)
  const counts = Array.from({ length: 36 }, (_, at) => new Set(ids.map((id) => id[at])).size)
  const digits = (count: number): number[] => Array<number>(count).fill(16)
  t.same(counts, [...digits(8), 1, ...digits(4), 1, 1, ...digits(3), 1, 4, ...digits(3), 1, ...digits(12)])
})

await t.test('two makers do not make the same ones', async (t) => {
  const [first, second] = [createUuids(), createUuids()]
  t.not(first(), second())
})
