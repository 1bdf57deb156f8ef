// What the documents name exists: files of this repository, commands of package.json, and the pages that they link to.

import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')
const pages = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bench/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
]
const rooms = readdirSync(join(root, 'src'))
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/**
 * The files that a page names, `relay/x` for one of src included, with `{a,b}` and `*` spelled out, and those that its
 * links lead to.
 */
function filesOf(page: string, text: string): string[] {
  const named = text.match(/(?<![\w./])(?:src|test|docs|scripts|bench|bin)\/[\w./*{},-]*[\w*}]/g) ?? []
  const inRooms = [...text.matchAll(/`(\w+)(\/[\w./*{},-]*[\w*}])`/g)].flatMap(([, room = '', path = '']) =>
    rooms.includes(room) ? [`src/${room}${path}`] : []
  )
  const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path = '']) => join(dirname(page), path))
  return [...named, ...inRooms, ...links]
}

function missing(page: string, text: string): string[] {
  const files = filesOf(page, text).filter((path) => {
    if (!/[*{}]/.test(path)) return !existsSync(join(root, path)) && !existsSync(join(root, `${path}.ts`))
    const pattern = new RegExp(
      `^${path
        .replaceAll('.', '\\.')
        .replace(/\*+/g, '[^/]*')
        .replace(/\{([^}]*)\}/g, (_, names: string) => `(${names.replaceAll(',', '|')})`)}$`
    )
    return !readdirSync(join(root, dirname(path))).some((name) => pattern.test(join(dirname(path), name)))
  })
  const commands = [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name = '']) => name)
  return [...files, ...commands.filter((name) => scripts[name] === undefined).map((name) => `npm run ${name}`)]
}

for (const page of pages) {
  t.test(`everything that ${page} names is there`, async (t) => {
    t.same(missing(page, readFileSync(join(root, page), 'utf8')), [])
  })
}

t.test('the check can fail', async (t) => {
  t.same(
    missing(
      'docs/x.md',
      'src/nothing/here.ts, [page](nowhere.md), npm run nothing, `relay/nothing`, src/main.ts, src/{main,nobody}.ts'
    ),
    ['src/nothing/here.ts', 'src/relay/nothing', 'docs/nowhere.md', 'npm run nothing']
  )
})
