// The official suite for 2025-11-25 and a part of the matrix of revisions, through three processes behind a round robin.
// `npm run replicas` has both suites, the whole matrix, and the SDKs.

import t from 'tap'
import { expected, figuresOf } from '../conformance/figures.ts'
import { startReference } from '../conformance/reference.ts'
import { runSuite } from '../conformance/suite.ts'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { runMatrix, wrong } from '../matrix/run.ts'

t.test('the suite for 2025-11-25 finds what it finds at one process', async (t) => {
  const requirements = '2025-11-25'
  const { url } = await startHouse(
    t,
    {
      upstreams: { reference: { type: 'http', url: await startReference(t, 'http') } },
      endpoints: { default: { upstreams: ['reference'], prefix: '' } }
    },
    3
  )
  const run = await runSuite(url(), { requirements, token: key })
  t.same(figuresOf(run), expected(requirements, requirements, 'Streamable HTTP'))
  t.equal(run.exitCode, 0, run.output)
})

t.test('a client of 2025-11-25 has every feature of a server of its revision', async (t) => {
  const ran = await runMatrix(t, { client: '2025-11-25', server: '2025-11-25', replicas: 3 })
  t.same(
    ran.flatMap((cell) => wrong(cell).map((fault) => `${cell.transport}, ${cell.feature}: ${fault}`)),
    []
  )
  t.ok(ran.length > 50)
})
