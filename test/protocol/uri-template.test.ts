// Which URIs a template could have made (RFC 6570), as far as it decides whose resource a URI is.

import fc from 'fast-check'
import t from 'tap'
import { uriMatcher } from '../../src/protocol/uri-template.ts'
import { runs } from '../kit/runs.ts'

const matches = (template: string, uri: string): boolean | undefined => uriMatcher(template)?.(uri)

t.test('a URI is compared with the literals of the template, and with what its expressions may become', async (t) => {
  for (const [template, fit, unfit] of [
    ['db://{table}', ['db://users', 'db://a/b', 'db://%2F'], ['db://', 'db://a?b', 'DB://users', 'xdb://users', 'db:']],
    ['file:///{path}', ['file:///project/src/main.rs'], ['file:///', 'file://host']],
    ['db://{table}/row/{id}', ['db://users/row/7', 'db://users/row/7/8'], ['db://a/b/row/7', 'db://users/row/']],
    ['db://{table}/row', ['db://users/row'], ['db:///row', 'db://users/row/1', 'db://a/b/row']],
    ['log:{day}-{hour}.txt', ['log:1-2.txt', 'log:1-2-3.txt'], ['log:1.txt', 'log:-2.txt', 'log:1-.txt']],
    ['x:{a}{b}', ['x:12'], ['x:1']],
    ['x:{+path}', ['x:a/b?c#d'], ['x:']],
    ['x:/{id}{?q,page}', ['x:/1', 'x:/1?q=a', 'x:/a/1?q=a'], ['x:/', 'x:/1#a', 'x:/?q=a']],
    ['x:{id}{/more*}', ['x:1', 'x:1/2/3'], ['x:', 'x:1?2']],
    ['x:list{?page}', ['x:list', 'x:list?page=1'], ['x:lists', 'x:']],
    ['x:{id}/end{#part}', ['x:1/end', 'x:1/end#2'], ['x:1/ends', 'x:/end']]
  ] as Array<[string, string[], string[]]>) {
    for (const uri of fit) t.equal(matches(template, uri), true, `${template} made ${uri}`)
    for (const uri of unfit) t.equal(matches(template, uri), false, `${template} did not make ${uri}`)
  }
})

t.test('what is no template of one scheme matches nothing', async (t) => {
  for (const template of ['{+uri}', '{scheme}://{rest}', '', 'relative/{id}', 'db://all', `x:${'{a}b'.repeat(33)}`])
    t.equal(uriMatcher(template), undefined, template)
  t.equal(matches('x:{a}', `x:${'y'.repeat(2_046)}`), true)
  t.equal(matches('x:{a}', `x:${'y'.repeat(2_047)}`), false, 'nor does a URI that is too long')
})

t.test('what was made from a template matches it, and nothing throws', async () => {
  const literal = fc.stringMatching(/^[a-z/._-]{0,6}$/)
  const value = fc.stringMatching(/^[A-Z0-9%]{1,6}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(value, literal), { minLength: 1, maxLength: 8 }), (parts) => {
      const template = `x:/${parts.map(([, text]) => `{v}${text}`).join('')}`
      return matches(template, `x:/${parts.map((each) => each.join('')).join('')}`) === true
    }),
    { numRuns: runs(2_000) }
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (template, uri) => {
      matches(`x:${template}`, `x:${uri}`)
    }),
    { numRuns: runs(5_000) }
  )
})
