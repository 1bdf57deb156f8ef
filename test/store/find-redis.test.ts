// Where the tests get their Redis from: nothing is skipped in silence.

import { spawnSync } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ensureRedis } from '../../scripts/programs.ts'

const script = join(import.meta.dirname, '../../scripts/programs.ts')
const find = (path: string) => spawnSync(process.execPath, [script], { env: { PATH: path }, encoding: 'utf8' })

t.test('redis-server on the PATH is taken, else valkey-server', async (t) => {
  const folder = t.testdir({
    both: { 'redis-server': '', 'valkey-server': '' },
    one: { 'valkey-server': '', 'redis-server': '' }
  })
  for (const path of ['both/redis-server', 'both/valkey-server', 'one/valkey-server'])
    await chmod(join(folder, path), 0o755)
  t.match(find(join(folder, 'both')).stderr, join(folder, 'both', 'redis-server'))
  t.match(
    find(join(folder, 'one')).stderr,
    join(folder, 'one', 'valkey-server'),
    'a file that is no program does not count'
  )
})

t.test('without one and without apt-get it stops and says what to install', async (t) => {
  const { status, stderr } = find(t.testdir({}))
  t.not(status, 0)
  t.match(stderr, /Install Redis 6 or newer or Valkey.*apt-get install redis-server/)
  t.match(stderr, 'REDIS_URL')
})

t.test('with apt-get, root installs the package and anybody else is told to', async (t) => {
  const folder = t.testdir({
    'apt-get':
      '#!/bin/sh\necho "called: $DEBIAN_FRONTEND $*"\nif [ "$1" = install ]; then : > "${0%/*}/redis-server"; /bin/chmod 755 "${0%/*}/redis-server"; fi\n'
  })
  await chmod(join(folder, 'apt-get'), 0o755)
  const { status, stdout, stderr } = find(folder)
  if (process.getuid?.() === 0) {
    t.equal(status, 0)
    t.equal(stdout, '', 'standard output stays clean')
    t.match(
      stderr,
      /called: noninteractive update\n[^]*called: noninteractive install -y --no-install-recommends redis-server\n/
    )
    t.match(stderr, `Redis for the tests: ${join(folder, 'redis-server')}`)
  } else {
    t.not(status, 0)
    t.match(stderr, /Install Redis/)
  }
})

t.test('a package manager that fails is reported with what to do instead', async (t) => {
  const folder = t.testdir({ 'apt-get': '#!/bin/sh\nexit 100\n' })
  await chmod(join(folder, 'apt-get'), 0o755)
  const { status, stderr } = find(folder)
  t.not(status, 0)
  t.match(stderr, /Install Redis 6 or newer or Valkey/)
})

t.test('on this machine there is one, or these tests would not run', async (t) => {
  t.match(ensureRedis(), /(redis|valkey)-server$/)
})
