// The last section of docs/architecture.md: every file of src, with the first sentences of the comment that it begins
// with.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const begin = '<!-- Written by `npm run docs` from the first comment of each file; do not edit. -->'

/** In characters: whole sentences while they fit, but at least one. */
const maxLength = 240

function headOf(path: string): string {
  const lines = readFileSync(join(root, 'src', path), 'utf8').split('\n')
  const comment = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('//'))
  )
  const [first = '', ...rest] = comment
    .map((line) => line.slice(3))
    .join(' ')
    .split(/(?<=\.) (?=[A-Z`])/)
  return rest
    .reduce((head, sentence) => (head.length + sentence.length < maxLength ? `${head} ${sentence}` : head), first)
    .replaceAll('|', '\\|')
}

/** @returns docs/architecture.md with its last section made anew */
export function architectureMarkdown(): string {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts')
  )
  const rows = files.sort().map((path) => `| \`${path}\` | ${headOf(path)} |`)
  return `${page.slice(0, page.indexOf(begin))}${begin}\n\n| file | what it is |\n|---|---|\n${rows.join('\n')}\n`
}
