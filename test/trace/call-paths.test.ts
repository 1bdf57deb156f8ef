// The path of a warm call through src is the one that the documents show.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { callPathsPage, recordCallPaths } from './call-paths.ts'

const read = (page: string): string => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')

/** On a busy machine a timer may run during the recorded call: another path is one that several recordings show. */
const maxRecordings = 4

t.test('docs/call-paths.md lists the files that a call of each kind enters, in order', async (t) => {
  const written = read('call-paths.md')
  let recorded = ''
  for (let n = 0; n < maxRecordings && recorded !== written; n++) recorded = callPathsPage(await recordCallPaths())
  t.equal(written, recorded, 'if not: node scripts/trace.ts --write')
})

t.test('the hops of docs/architecture.md stand in the order in which a call takes them', async (t) => {
  const hops = [...read('architecture.md').matchAll(/^\| [1-8] [^|]+\| `([^`]+)` \|/gm)].map(([, file = '']) => file)
  t.equal(hops.length, 8)
  const [path = ''] = /^## legacy client, http upstream, without.*?(?=^## )/ms.exec(read('call-paths.md')) ?? []
  const files = [...path.matchAll(/^1\. `([^`]+)`$/gm)].map(([, file = '']) => file)
  t.same(
    files.filter((file) => hops.includes(file)),
    hops
  )
})
