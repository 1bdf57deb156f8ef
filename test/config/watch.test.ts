import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { watchConfig } from '../../src/config/watch.ts'
import { patienceMs } from '../kit/until.ts'

/** Counts changes, and waits for the n-th with a deadline. */
function watched(t: Test, path: string, pollMs = 60_000) {
  let count = 0
  let wake = (): void => {}
  const watch = watchConfig(
    path,
    () => {
      count++
      wake()
    },
    { debug() {} },
    { settleMs: 20, pollMs }
  )
  t.teardown(() => watch.close())
  return {
    watch,
    get count() {
      return count
    },
    async until(wanted: number): Promise<void> {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const deadline = setTimeout(() => reject(new Error(`saw ${count} changes of ${wanted}`)), patienceMs)
      wake = () => {
        if (count >= wanted) resolve()
      }
      wake()
      await promise.finally(() => clearTimeout(deadline))
    }
  }
}

t.test('a file that is written in place is noticed, each time', async (t) => {
  const path = join(t.testdir({ 'c.yaml': 'a' }), 'c.yaml')
  const seen = watched(t, path)
  writeFileSync(path, 'b')
  await seen.until(1)
  writeFileSync(path, 'c')
  await seen.until(2)
})

t.test('a file that is replaced by rename, as editors do, is noticed, each time', async (t) => {
  const folder = t.testdir({ 'c.yaml': 'a' })
  const seen = watched(t, join(folder, 'c.yaml'))
  for (const round of [1, 2]) {
    writeFileSync(join(folder, '.c.yaml.swp'), `round ${round}`)
    renameSync(join(folder, '.c.yaml.swp'), join(folder, 'c.yaml'))
    await seen.until(round)
  }
})

t.test('a swapped symlink above the file, as Kubernetes does, is noticed, each time', async (t) => {
  const folder = t.testdir({ v0: { 'c.yaml': 'v0' } })
  symlinkSync('v0', join(folder, '..data'))
  symlinkSync('..data/c.yaml', join(folder, 'c.yaml'))
  const seen = watched(t, join(folder, 'c.yaml'))
  for (const round of [1, 2]) {
    mkdirSync(join(folder, `v${round}`))
    writeFileSync(join(folder, `v${round}`, 'c.yaml'), `v${round}`)
    symlinkSync(`v${round}`, join(folder, '..new'))
    renameSync(join(folder, '..new'), join(folder, '..data'))
    rmSync(join(folder, `v${round - 1}`), { recursive: true })
    await seen.until(round)
  }
})

t.test('a change of the real file behind a symlink into another folder is noticed', async (t) => {
  const folder = t.testdir({ real: { 'c.yaml': 'a' }, here: {} })
  symlinkSync('../real/c.yaml', join(folder, 'here', 'c.yaml'))
  const seen = watched(t, join(folder, 'here', 'c.yaml'))
  writeFileSync(join(folder, 'real', 'c.yaml'), 'b')
  await seen.until(1)
})

t.test('a file that goes away and comes back with other content is one change', async (t) => {
  const path = join(t.testdir({ 'c.yaml': 'a' }), 'c.yaml')
  const seen = watched(t, path)
  unlinkSync(path)
  writeFileSync(path, 'b')
  await seen.until(1)
  t.equal(seen.count, 1)
})

t.test('a neighbour that is written all the time hides no change', async (t) => {
  const folder = t.testdir({ 'c.yaml': 'a' })
  const seen = watched(t, join(folder, 'c.yaml'))
  let round = 0
  const busy = setInterval(() => writeFileSync(join(folder, 'busy.db'), `${round++}`), 2)
  writeFileSync(join(folder, 'c.yaml'), 'b')
  // Stopped before the folder is removed, whatever comes of it.
  await seen.until(1).finally(() => clearInterval(busy))
  t.ok(round > 0, 'the neighbour was busy')
})

t.test('the same content again, other files, and anything after close are no change', async (t) => {
  const folder = t.testdir({ 'c.yaml': 'a' })
  const path = join(folder, 'c.yaml')
  const seen = watched(t, path)
  writeFileSync(path, 'a')
  writeFileSync(join(folder, 'other.yaml'), 'x')
  const closed = watched(t, path)
  closed.watch.close()
  // The positive control comes last: once it is seen, the others would have been.
  writeFileSync(path, 'b')
  await seen.until(1)
  t.equal(seen.count, 1)
  t.equal(closed.count, 0)
})

t.test('where no folder can be watched the slow look notices', async (t) => {
  const folder = t.testdir({})
  const path = join(folder, 'later', 'c.yaml')
  const seen = watched(t, path, 20)
  mkdirSync(join(folder, 'later'))
  writeFileSync(path, 'a')
  await seen.until(1)
})

const naming = (...files: readonly string[]): string => JSON.stringify(files.map((file) => `\${file:${file}}`))

t.test('a file that the configuration names is watched like the configuration', async (t) => {
  const folder = t.testdir({ 'c.yaml': naming('secrets/key', 'secrets/not-yet'), secrets: { key: 'a', other: 'a' } })
  const seen = watched(t, join(folder, 'c.yaml'))
  writeFileSync(join(folder, 'secrets', 'other'), 'b')
  writeFileSync(join(folder, 'secrets', 'key'), 'b')
  await seen.until(1)
  writeFileSync(join(folder, 'secrets', '.key.new'), 'c')
  renameSync(join(folder, 'secrets', '.key.new'), join(folder, 'secrets', 'key'))
  await seen.until(2)
  writeFileSync(join(folder, 'secrets', 'not-yet'), 'a')
  await seen.until(3)
  t.equal(seen.count, 3, 'a neighbour that nobody names is no change')
})

t.test('a secret that is swapped as Kubernetes and Docker do it is noticed, each time', async (t) => {
  const folder = t.testdir({ 'c.yaml': naming('secrets/key'), secrets: { v0: { key: 'v0' } } })
  const secrets = join(folder, 'secrets')
  symlinkSync('v0', join(secrets, '..data'))
  symlinkSync('..data/key', join(secrets, 'key'))
  const seen = watched(t, join(folder, 'c.yaml'))
  for (const round of [1, 2]) {
    mkdirSync(join(secrets, `v${round}`))
    writeFileSync(join(secrets, `v${round}`, 'key'), `v${round}`)
    symlinkSync(`v${round}`, join(secrets, '..new'))
    renameSync(join(secrets, '..new'), join(secrets, '..data'))
    rmSync(join(secrets, `v${round - 1}`), { recursive: true })
    await seen.until(round)
  }
})

t.test('the files that are watched are those that the configuration names now', async (t) => {
  const folder = t.testdir({ 'c.yaml': naming('one'), one: 'a', two: 'a' })
  const seen = watched(t, join(folder, 'c.yaml'))
  writeFileSync(join(folder, 'c.yaml'), naming('two'))
  await seen.until(1)
  writeFileSync(join(folder, 'one'), 'b')
  writeFileSync(join(folder, 'two'), 'b')
  await seen.until(2)
  writeFileSync(join(folder, 'c.yaml'), '[ this is no configuration')
  await seen.until(3)
  writeFileSync(join(folder, 'two'), 'c')
  await seen.until(4)
  t.equal(seen.count, 4, 'the file that is no longer named is no change')
})

t.test('a long configuration is not read to find out which files it names', async (t) => {
  const long = (file: string): string => `${naming(file)}# ${'x'.repeat(40_000)}\n`
  const folder = t.testdir({ 'c.yaml': long('one'), one: 'a', two: 'a' })
  const seen = watched(t, join(folder, 'c.yaml'))
  writeFileSync(join(folder, 'one'), 'b')
  await seen.until(1)
  writeFileSync(join(folder, 'c.yaml'), long('two'))
  await seen.until(2)
  writeFileSync(join(folder, 'two'), 'b')
  await seen.until(3)
})

t.test('a device in the place of a secret, which never ends, holds nothing up', async (t) => {
  const folder = t.testdir({ 'c.yaml': naming('/dev/zero', 'key'), key: 'a' })
  const seen = watched(t, join(folder, 'c.yaml'))
  writeFileSync(join(folder, 'key'), 'b')
  await seen.until(1)
})
