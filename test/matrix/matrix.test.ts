// Every client revision with every server revision, over every transport, with every feature: what the table says, and
// nothing else.

import { readFile } from 'node:fs/promises'
import t from 'tap'
import { eraPage } from './page.ts'
import { table } from './table.ts'
import { clients, featureNames, runMatrix, servers, wrong, type Ran } from './run.ts'

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
