// A changed configuration holds at every worker, whether the file is watched or SIGHUP says so.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { signalAll } from '../e2e/kit/process.ts'
import { adminSection } from '../kit/admin.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { key } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
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

t.test('a worker that takes the place of another one keeps what the gateway was started with', async (t) => {
  const gateway = await workers(t, { ...ownProcess, top: { admin: adminSection } })
  const file = join(gateway.folder, 'gatehouse.json')
  const good = await readFile(file, 'utf8')
  const started = { ...(JSON.parse(good) as object), listen: { host: '127.0.0.2' }, publicUrl: 'http://localhost:9' }
  await writeFile(file, JSON.stringify(started))
  const later = ({ msg }: Record<string, unknown>): boolean => msg === 'these changes take effect after a restart'
  await gateway.logged('both say so', () => gateway.workersOf(later).length === 2)
  const listening = () => gateway.log().filter(({ msg }) => msg === 'listening')
  const addresses = () => new Set(listening().map(({ url, publicUrl, adminUrl }) => `${url} ${publicUrl} ${adminUrl}`))
  t.equal(addresses().size, 1, 'the control')
  const [victim = 0] = await gateway.pidsOfWorkers()
  signalAll([victim], 'SIGKILL')
  await until('there are two again', () => listening().length === 3)
  t.equal(addresses().size, 1)
  const said = gateway.log().filter(later)
  t.equal(said.length, 3)
  t.same(said.at(-1)?.['keys'], ['listen', 'publicUrl'])
  for (const _ of turns) t.equal((await modernRequest(gateway.mcp, 'tools/list', {}, { token: key })).status, 200)
})

t.test('where what the gateway was started with is no more, a worker does not start without it', async (t) => {
  const gateway = await workers(t, { ...ownProcess, top: { admin: adminSection } })
  const file = join(gateway.folder, 'gatehouse.json')
  const good = await readFile(file, 'utf8')
  await writeFile(file, JSON.stringify({ ...(JSON.parse(good) as object), admin: undefined }))
  const [victim = 0] = await gateway.pidsOfWorkers()
  signalAll([victim], 'SIGKILL')
  const { err } = await gateway.logged('why not', ({ msg }) => msg === 'a worker could not start')
  t.match((err as Error).message, 'The gateway was started with admin')
  t.equal((await modernRequest(gateway.mcp, 'tools/list', {}, { token: key })).status, 200, 'the other one goes on')
  await writeFile(file, good)
  await until('there are two again', () => gateway.log().filter(({ msg }) => msg === 'listening').length === 3)
})
