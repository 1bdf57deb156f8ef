import fc from 'fast-check'
import t from 'tap'
import { ConfigError, problemLine } from '../../src/config/problems.ts'
import { exampleConfig } from '../../scripts/config-doc.ts'
import { base, compiled, withValue } from './kit.ts'
import { runs } from '../kit/runs.ts'

const env = { CI_KEY: 'q7Xw2Zr9Lk4Vb8Nt', TICKETS_KEY: 'x' }

/** Compiles or is refused in words; anything else fails the property. */
function settles(text: string): boolean {
  let refused: ConfigError | undefined
  try {
    compiled(text, { env })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    refused = error
  }
  // A problem is one line, and nothing in it moves the cursor of a terminal.
  return (
    refused === undefined ||
    (refused.problems.length > 0 && refused.problems.every((problem) => !/[\n\r\u001b]/.test(problemLine(problem))))
  )
}

t.test('any text compiles or is refused with a ConfigError', async (t) => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), settles), { numRuns: runs(500) })
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          'a',
          ': ',
          '- ',
          '\n',
          '  ',
          '{',
          '}',
          '[',
          ']',
          '"',
          "'",
          '${',
          '}',
          '$$',
          '&a ',
          '*a',
          '!x ',
          '|',
          '>',
          '?',
          ',',
          '#',
          '%',
          '---\n',
          '\t',
          'tenants',
          'upstreams'
        ),
        { maxLength: 40 }
      ),
      (parts) => settles(parts.join(''))
    ),
    { numRuns: runs(1000) }
  )
  t.pass('no other error')
})

t.test('any JSON compiles or is refused with a ConfigError', async (t) => {
  fc.assert(fc.property(fc.json(), settles), { numRuns: runs(500) })
  t.pass('no other error')
})

t.test('a value that cannot become a text is refused like any other', async (t) => {
  const upstreams = { tickets: { type: { toString: 0 }, url: 'https://tickets.example.com/mcp' } }
  t.ok(settles(JSON.stringify({ tenants: { acme: { auth: 'none', upstreams } } })))
})

t.test('the example with a piece of it replaced compiles or is refused with a ConfigError', async (t) => {
  const piece = fc.tuple(fc.nat(exampleConfig.length), fc.nat(30), fc.string({ maxLength: 8 }))
  fc.assert(
    fc.property(piece, ([at, length, text]) =>
      settles(exampleConfig.slice(0, at) + text + exampleConfig.slice(at + length))
    ),
    { numRuns: runs(500) }
  )
  t.pass('no other error')
})

t.test('any value in any place compiles or is refused with a ConfigError', async (t) => {
  const paths: (string | number)[][] = []
  const walk = (value: unknown, path: (string | number)[]): void => {
    if (path.length > 0) paths.push(path)
    if (typeof value === 'object' && value !== null)
      for (const [key, item] of Object.entries(value)) walk(item, [...path, Array.isArray(value) ? Number(key) : key])
  }
  walk(base(), [])
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) =>
      settles(JSON.stringify(withValue(path, value)))
    ),
    { numRuns: runs(1000) }
  )
  t.pass('no other error')
})
