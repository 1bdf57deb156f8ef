// A changed configuration holds at every worker, whether the file is watched or SIGHUP says so.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { modernRequest } from '../kit/modern-client.ts'
import { key } from '../kit/gateway.ts'
import { ownProcess, workers } from './kit.ts'

const turns = [1, 2, 3, 4]

t.test('an API key that is new in the file is taken by both workers, and the one before it by neither', async (t) => {
  const gateway = await workers(t, ownProcess)
  const list = (token: string) => modernRequest(gateway.mcp, 'tools/list', {}, { token })
  const next = 'gh_key_of_the_next_file_0123456789'
  for (const _ of turns) t.same([(await list(key)).status, (await list(next)).status], [200, 401], 'the control')
  const file = join(gateway.folder, 'gatehouse.json')
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll(key, next))
  await gateway.logged('both took it', () => gateway.workersOf(({ msg }) => msg === 'configuration taken').length === 2)
  for (const _ of turns) t.same([(await list(next)).status, (await list(key)).status], [200, 401])

  gateway.signal('SIGHUP')
  const isSame = ({ msg }: Record<string, unknown>): boolean => msg === 'configuration read again: it is the one in use'
  await gateway.logged('both read it again', () => gateway.workersOf(isSame).length === 2)
  t.equal((await list(next)).status, 200)
})
