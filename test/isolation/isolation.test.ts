// Tenants by chance over several processes: whatever their people do, and whatever they try, nobody finds anything of
// another tenant, and what was planted at the wrong one is found wherever it then stands. `npm run isolation` makes a long
// run of it; ISOLATION_SEED another one here.

import t from 'tap'
import { runPart } from './part.ts'

const seed = Number(process.env['ISOLATION_SEED'] ?? 20_260_728)

t.test(`seed ${seed}`, { timeout: 600_000 }, async (t) => {
  const { figures, faults } = await runPart(t, { operations: 1_200, people: 3, replicas: 2, seed })
  t.same(faults, [])
  t.ok(figures.operations >= 400, `${figures.operations} operations`)
  t.comment(JSON.stringify(figures))
})
