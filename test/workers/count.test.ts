// How many workers `--workers` asks for.

import { availableParallelism } from 'node:os'
import t from 'tap'
import { workerCount } from '../../src/cli/run.ts'
import { gatehouse } from '../e2e/kit/process.ts'

t.test('a number from 1 to 64, or one for each core; one where nothing is said', async (t) => {
  t.equal(workerCount(undefined), 1)
  t.equal(workerCount('1'), 1)
  t.equal(workerCount('64'), 64)
  t.equal(workerCount('auto'), Math.min(64, availableParallelism()))
  for (const text of ['0', '65', '-1', '2.5', '1e1', ' 2', '', 'all'])
    t.throws(() => workerCount(text), { name: 'UsageError' }, text)
})

t.test('anything else is a mistake in the command line', async (t) => {
  const { ended, stderr } = gatehouse(t, ['serve', '--config', 'gatehouse.yaml', '--workers', 'many'])
  t.same(await ended, { code: 2, signal: null })
  t.match(stderr[0], 'gatehouse: --workers must be a number from 1 to 64, or auto, not "many".')
})
