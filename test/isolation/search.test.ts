// What the runs over tenants rest on: nothing that belongs to another tenant is overlooked, wherever a text is cut.

import t from 'tap'
import { randomMarks } from './marks.ts'
import { createSearch, plantedBefore } from './search.ts'

const { mark, letters, scopesOf } = randomMarks()
const tenants = ['north', 'south'].map((id, at) => ({ id, letter: letters[at] ?? '' }))
const [north, south] = tenants

t.test('something of another tenant is found, wherever a text is cut', async (t) => {
  const text = `of ${mark}${north?.letter}-canary-north and of ${mark}${south?.letter}-canary-south`
  for (let cut = 0; cut <= text.length; cut++) {
    const search = createSearch(mark, tenants)
    const judge = search.pieces('stream of events', { id: 'north', letter: north?.letter ?? '' })
    judge(text.slice(0, cut))
    judge(text.slice(cut))
    t.ok(search.leaks.length > 0 && search.leaks.every((each) => each.includes('something of south')), `cut at ${cut}`)
  }
})

t.test('what is its own is no leak', async (t) => {
  const search = createSearch(mark, tenants)
  t.ok(search.judge('answer', north, `of ${mark}${north?.letter}-canary-north`))
  t.notOk(search.judge('answer', north, `of nobody, ${mark}`))
  t.same(search.leaks, [])
})

t.test('what was planted counts apart', async (t) => {
  const search = createSearch(mark, tenants)
  search.judge('metrics', undefined, `${plantedBefore}${mark}${south?.letter}-canary-south`)
  t.same(search.leaks, [])
  t.equal(search.planted.get('metrics'), 1)
})

t.test('one of the scopes of a tenant shows its mark in base64url, whatever comes before', async (t) => {
  for (const { letter } of tenants)
    for (const before of ['', 'x', 'xx', 'xxx'])
      t.ok(
        scopesOf(letter).some((scope) =>
          Buffer.from(`${before}${scope} and more`)
            .toString('base64url')
            .includes(mark + letter)
        ),
        `${letter} after ${before.length}`
      )
})
