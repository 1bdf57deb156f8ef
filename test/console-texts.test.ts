// All words of the console stand in one file, so that they can be translated there.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import t from 'tap'

const folder = join(import.meta.dirname, '..', 'src', 'console')
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')

/** Where a value goes: to be seen, to a list of classes, or elsewhere. */
type Place = 'shown' | 'class' | 'code'
interface Node {
  readonly type: string
  readonly [member: string]: unknown
}
interface Quasi {
  readonly value: { readonly cooked: string }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** What people read, of an element or of a part of the console. */
const shownAttribute = /^(?:aria-(?:label|description|valuetext)|title|alt|placeholder|label|hint|summary|why|caption)$/
const comparing = /^(?:startsWith|endsWith|includes)$/
/** Of a member of something; of anything else, nothing. */
const nameOf = (value: unknown): string =>
  isNode(value) && isNode(value['property']) ? String(value['property']['name'] ?? '') : ''
const letter = /\p{L}/u
/** Several words, the end of a sentence, a word that begins like one. */
const prose = /\p{L}{2,}[,:;]? \p{L}|\p{L}[.!?…]$|^\p{Lu}\p{Ll}+$/u
/** What follows a number, or stands before it. */
const unit = /^ \p{L}+|\p{L} $/u
/** Strings that look like words and are read by browsers alone. */
const ofBrowsers = new Set(['(prefers-color-scheme: dark)'])

/** The texts of a template between its tags and in what people read of them, and where each of its values goes. */
function ofTemplate(quasis: readonly Quasi[]): { readonly texts: string[]; readonly places: Place[] } {
  const texts: string[] = []
  const places: Place[] = []
  let tag: string | undefined
  for (const { value } of quasis) {
    for (const part of value.cooked.split(/(?=[<>])/)) {
      if (part.startsWith('<')) tag = part
      else if (tag !== undefined && !part.startsWith('>')) tag += part
      else {
        tag = undefined
        texts.push(part.replace(/^>/, ''))
      }
    }
    for (const [, name = '', said = ''] of value.cooked.matchAll(/([\w-]+)="([^"]*)"/g))
      if (shownAttribute.test(name)) texts.push(said)
    const [, name = ''] = /([\w-]+)=$/.exec(tag ?? '') ?? []
    places.push(tag === undefined || shownAttribute.test(name) ? 'shown' : name === 'class' ? 'class' : 'code')
    if (tag !== undefined) tag = '<'
  }
  return { texts: texts.map((text) => text.trim()).filter((text) => letter.test(text)), places }
}

/** @returns the words that a module says by itself, and how it writes numbers and times by itself */
function wordsIn(file: string, source: string): string[] {
  const found: string[] = []
  const judge = (said: string, place: Place, isPart = false): void => {
    const isSaid =
      place === 'shown' ? letter.test(said) : place === 'code' && (prose.test(said) || (isPart && unit.test(said)))
    if (isSaid && !ofBrowsers.has(said)) found.push(`${file}: ${said}`)
  }
  function walk(value: unknown, place: Place): void {
    if (Array.isArray(value)) return value.forEach((each) => walk(each, place))
    if (!isNode(value)) return
    const { type } = value
    if (type === 'ImportDeclaration' || type === 'ImportExpression') return
    if (type === 'Literal') {
      if (typeof value['value'] === 'string') judge(value['value'], place)
      return
    }
    if (type === 'TemplateLiteral') {
      const quasis = value['quasis'] as Quasi[]
      for (const quasi of quasis) judge(quasi.value.cooked, place, quasis.length > 1)
      return walk(value['expressions'], place)
    }
    if (type === 'TaggedTemplateExpression') {
      const { quasis, expressions } = value['quasi'] as { quasis: Quasi[]; expressions: unknown[] }
      if ((value['tag'] as Node)['name'] !== 'html') return walk(expressions, 'code')
      const { texts, places } = ofTemplate(quasis)
      found.push(...texts.map((text) => `${file}: ${text}`))
      return expressions.forEach((each, at) => walk(each, places[at] ?? 'code'))
    }
    if (type === 'ConditionalExpression') {
      walk(value['test'], 'code')
      return walk([value['consequent'], value['alternate']], place)
    }
    if (type === 'LogicalExpression') {
      walk(value['left'], value['operator'] === '&&' ? 'code' : place)
      return walk(value['right'], place)
    }
    if (type === 'ParenthesizedExpression') return walk(value['expression'], place)
    // What is compared is not said, and no name of a member is.
    if (type === 'CallExpression' && comparing.test(nameOf(value['callee']))) return walk(value['callee'], 'code')
    if (type === 'BinaryExpression' && /^[!=]==$/.test(String(value['operator'])))
      return walk(
        [value['left'], value['right']].filter((each) => (each as Node).type !== 'Literal'),
        'code'
      )
    if (type === 'Property' && value['computed'] === false) return walk(value['value'], 'code')
    if (type === 'MemberExpression' && value['computed'] === true) return walk(value['object'], 'code')
    if (nameOf(value).startsWith('toLocale')) found.push(`${file}: ${nameOf(value)}`)
    if (type === 'Identifier' && value['name'] === 'Intl') found.push(`${file}: Intl`)
    for (const each of Object.values(value)) walk(each, 'code')
  }
  walk(parseSync(file, source).program, 'code')
  return found
}

t.test('no module of the console says a word that is not in text.js', async (t) => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.js') && file !== 'text.js'
  )
  t.ok(files.length > 30)
  t.same(
    files.flatMap((file) => wordsIn(file, read(file))),
    []
  )
  for (const [source, words] of Object.entries({
    'html`<p class="note bad">Nothing to see</p>`': 'Nothing to see',
    'html`<p>${count} of ${all}</p>`': 'of',
    "html`<p>${isOpen ? 'open' : text.shut}</p>`": 'open',
    'html`<p>${isOpen && `open since ${at}`}</p>`': 'open since ',
    'html`<button aria-label="Close">×</button>`': 'Close',
    "html`<${Table} caption=${'calls'} />`": 'calls',
    "tell('failed', 'It went wrong.')": 'It went wrong.',
    "columns = [{ title: 'Version' }]": 'Version',
    'const took = `${seconds} s`': ' s',
    "count.toLocaleString('en')": 'toLocaleString',
    'new Intl.NumberFormat()': 'Intl'
  }))
    t.match(wordsIn('control.js', source), [`control.js: ${words}`], source)
  const own = 'html`<p class="note bad" key=${`${a} ${b}`}>${kind === "Tool" && said.none}</p>`'
  t.same(wordsIn('control.js', own), [], 'what nobody reads is none')
})

t.test('what a browser without JavaScript shows is said there, too', async (t) => {
  const { text } = (await import(join(folder, 'text.js'))) as {
    text: { readonly product: string; readonly noScript: string; readonly language: string }
  }
  const body = read('index.html').replace(/<script[^]*?<\/script>/g, '')
  const said = [...body.matchAll(/>([^<]*\p{L}[^<]*)</gu)].map(([, words]) => words)
  t.same(said, [text.product, text.noScript])
  t.match(body, `<html lang="${text.language}">`)
})
