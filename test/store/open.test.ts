// The configuration's word for the store leads to the right adapter.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { StoreConfig } from '../../src/config/snapshot.ts'
import { openStore } from '../../src/store/open.ts'
import { redis } from '../kit/redis.ts'
import { quiet } from './kit.ts'

t.test('memory is forgotten, a file and Redis are not', async (t) => {
  const path = join(t.testdir(), 'data', 'gatehouse.db')
  const { url } = await redis(t)
  const expected: Array<[StoreConfig, string | undefined]> = [
    [{ kind: 'memory' }, undefined],
    [{ kind: 'file', path }, 'v'],
    [{ kind: 'redis', url }, 'v']
  ]
  for (const [config, value] of expected) {
    const first = await openStore(config, { clock: Date, log: quiet })
    await first.set('k', 'v')
    t.equal(await first.get('k'), 'v', config.kind)
    await first.close()
    const second = await openStore(config, { clock: Date, log: quiet })
    t.equal(await second.get('k'), value, config.kind)
    await second.close()
  }
  t.ok((await stat(path)).isFile())
})
