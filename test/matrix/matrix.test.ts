// Every client revision with every server revision, over every transport, with every feature: what the table says, and
// nothing else.

import { readFile } from 'node:fs/promises'
import t from 'tap'
import { eraPage } from './page.ts'
import { expected, table } from './table.ts'
import { clients, featureNames, runMatrix, servers, type Ran } from './run.ts'

/** What is wrong with a cell, in sentences. */
function wrong({ client, revision, transport, feature, seen, faults }: Ran): string[] {
  const due = expected(feature, client, revision, transport)
  if (due === undefined) return ['the table has no rule for it']
  if (seen === undefined) return [...faults]
  const shown = ({ kind, error }: { kind: string; error?: unknown }): string =>
    error === undefined ? kind : `${kind} (${String(error)})`
  return shown(seen) === shown(due) ? [...faults] : [`it is ${shown(seen)} and should be ${shown(due)}`, ...faults]
}

let ran: Ran[] = []
t.before(async () => {
  ran = await runMatrix(t)
})

for (const { revision, transport } of servers) {
  for (const client of clients) {
    t.test(`a client of ${client} with a server of ${revision} over ${transport}`, async (t) => {
      const cells = ran.filter(
        (cell) => cell.client === client && cell.revision === revision && cell.transport === transport
      )
      t.same(
        cells.map(({ feature }) => feature),
        featureNames,
        'every cell ran'
      )
      t.same(
        cells.flatMap((cell) => wrong(cell).map((fault) => `${cell.feature}: ${fault}`)),
        []
      )
    })
  }
}

t.test('nothing out of order came up outside of the cells', async (t) => {
  t.same(
    ran.filter(({ feature }) => !featureNames.includes(feature)).flatMap(({ faults }) => faults),
    []
  )
  t.same(
    Object.keys(table).toSorted(),
    featureNames.toSorted(),
    'the table has the features, all of them and no others'
  )
})

t.test('docs/protocol-eras.md is what this run shows', async (t) => {
  t.equal(
    await readFile(new URL('../../docs/protocol-eras.md', import.meta.url), 'utf8'),
    eraPage(ran),
    'if not: node scripts/eras.ts'
  )
})
