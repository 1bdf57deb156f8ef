// Public names and URIs: short enough, safe enough, the same every time, never two for one.

import fc from 'fast-check'
import t from 'tap'
import { publicName, upstreamName } from '../../src/protocol/messages.ts'
import {
  maxNameLength,
  mayBeShortened,
  publicNameFor,
  shortHash,
  unwrapUri,
  wrapUri
} from '../../src/protocol/naming.ts'
import { runs } from '../kit/runs.ts'

const word = fc.stringMatching(/^[A-Za-z0-9_.-]{1,32}$/)
const separator = fc.stringMatching(/^[A-Za-z0-9_.-]{1,8}$/)
const upstream = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/).map(upstreamName)
const anyText = fc.string({ unit: 'binary', maxLength: 200 })

t.test('a prefixed name is at most 64 characters of a plain set', async () => {
  fc.assert(
    fc.property(word, separator, anyText, (prefix, separator, name) => {
      const shown = publicNameFor(prefix, separator, name)
      return (
        shown.length <= maxNameLength &&
        /^[A-Za-z0-9_.-]+$/.test(shown) &&
        shown === publicNameFor(prefix, separator, name)
      )
    }),
    { numRuns: runs(5_000) }
  )
})

t.test('a name that fits is only prefixed; one without a prefix is not touched', async (t) => {
  t.equal(publicNameFor('files', '__', 'read_file'), 'files__read_file')
  const longest = 'x'.repeat(64 - 'files__'.length)
  t.equal(publicNameFor('files', '__', longest), `files__${longest}`)
  t.match(publicNameFor('files', '__', 'résumé/lesen'), /^files__r_sum__lesen_[0-9a-v]{8}$/)
  fc.assert(fc.property(anyText, (name) => publicNameFor('', '__', name) === publicName(name)))
})

t.test('a name that is too long loses the end of its prefix, and keeps its own end', async (t) => {
  const name = 'list_all_invoices_of_a_customer_by_year'
  t.match(publicNameFor('accounting-department-of-acme', '__', name), /^accounting-dep_[0-9a-v]{8}__list_.*_by_year$/)
  const longest = `${'x'.repeat(48)}delete`
  t.match(publicNameFor('warehouse', '__', longest), /^[0-9a-v]{8}__x{48}delete$/, 'nothing of the prefix is left')
  t.match(publicNameFor('warehouse', '__', `start${longest}`), /^[0-9a-v]{8}_tx{48}delete$/, 'and here of the name')
  fc.assert(
    fc.property(word, separator, fc.stringMatching(/^[A-Za-z0-9_.-]{33,90}$/), (prefix, separator, name) => {
      const shown = publicNameFor(prefix, separator, name)
      const isWhole = shown === prefix + separator + name
      return isWhole || (shown.endsWith(name.slice(-40)) && mayBeShortened(prefix, separator, shown))
    }),
    { numRuns: runs(5_000) }
  )
})

t.test('two names of a hundred thousand never meet', async (t) => {
  const seen = new Map<string, string>()
  const add = (prefix: string, name: string): boolean => {
    const full = `${prefix}__${name}`
    const shown = publicNameFor(prefix, '__', name)
    const before = seen.get(shown)
    seen.set(shown, full)
    return before === undefined || before === full
  }
  // Names that must be hashed: too long, with a difference in the part that is cut off, or in characters that are
  // replaced.
  const stem = 'a_rather_long_name_that_says_everything_about_what_the_tool_does_'
  let collisions = 0
  for (let n = 0; n < 100_000; n++) if (!add('up', stem + n.toString(36))) collisions++
  t.equal(collisions, 0)
  fc.assert(
    fc.property(word, anyText, (prefix, name) => add(prefix, name + '/')),
    { numRuns: runs(20_000) }
  )
  for (const [a, b] of [
    ['a b', 'a_b'],
    ['a/b', 'a\\b'],
    ['ä', 'ö'],
    ['\ud800', '\ud801'],
    ['x '.repeat(40), 'x_'.repeat(40)]
  ] as const)
    t.not(publicNameFor('up', '__', a), publicNameFor('up', '__', b))
})

t.test('the hash has its length, and every bit of the text counts', async () => {
  fc.assert(
    fc.property(anyText, fc.nat(), fc.integer({ min: 1, max: 0xffff }), (text, at, change) => {
      if (text === '') return true
      const where = at % text.length
      const other = text.slice(0, where) + String.fromCharCode(text.charCodeAt(where) ^ change) + text.slice(where + 1)
      return /^[0-9a-v]{8}$/.test(shortHash(text)) && shortHash(text) !== shortHash(other)
    }),
    { numRuns: runs(20_000) }
  )
})

t.test('a wrapped URI leads back to its upstream and itself', async () => {
  const uri = fc.oneof(
    fc.webUrl().map((url) => url.replace(/^https?/, 'repo')),
    anyText,
    fc.constantFrom(
      'file:///etc/passwd',
      'ui://app/index.html',
      'ui://',
      'ui:///x',
      'UI://app',
      'gatehouse://a/b',
      'gatehouse://',
      'test://item/{id}',
      '{+path}',
      'x:{?q*}',
      'urn:a:b',
      '',
      '/',
      'ftp://h/?a=/&b=//'
    )
  )
  fc.assert(
    fc.property(upstream, uri, (upstream, uri) => {
      if (/^https?:/i.test(uri)) return wrapUri(upstream, uri) === uri
      const shown = wrapUri(upstream, uri)
      const back = unwrapUri(shown)
      return (
        back?.upstream === upstream &&
        back.uri === uri &&
        shown.endsWith(uri.startsWith('ui://') ? uri.slice(5) : uri) &&
        shown.startsWith('ui://') === uri.startsWith('ui://')
      )
    }),
    { numRuns: runs(2_000) }
  )
  fc.assert(
    fc.property(
      upstream,
      upstream,
      uri,
      uri,
      (a, b, one, two) => (a === b && one === two) || /^https?:/i.test(one) || wrapUri(a, one) !== wrapUri(b, two)
    ),
    { numRuns: runs(5_000) }
  )
})

t.test('what is not wrapped is not unwrapped', async (t) => {
  for (const uri of [
    '',
    'gatehouse:',
    'gatehouse://',
    'gatehouse:///x',
    'gatehouse://up',
    'GATEHOUSE://up/x',
    'ui://',
    'ui://x',
    'ui:///x',
    'file:///gatehouse://up/x',
    'https://h/x',
    ' gatehouse://up/x'
  ])
    t.equal(unwrapUri(uri), undefined, uri)
  t.same(unwrapUri('gatehouse://up/'), { upstream: 'up', uri: '' })
  t.same(unwrapUri('ui://up/app/index.html'), { upstream: 'up', uri: 'ui://app/index.html' })
})
