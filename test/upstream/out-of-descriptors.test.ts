// A process that has no file descriptor left: what needs one fails by a limit of the gateway, and nothing else does.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { exportJWK, generateKeyPair } from 'jose'
import t from 'tap'
import { listen } from '../kit/listen.ts'
import { startUpstream } from '../kit/upstream.ts'

const script = new URL('../kit/out-of-descriptors.ts', import.meta.url).pathname

t.test(
  'neither a stdio nor an HTTP upstream is blamed, and both are connected as soon as there are some',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(upstream.close)
    const kid = 'one'
    const { publicKey } = await generateKeyPair('ES256')
    const keySet = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] }
    const jwksUri = await listen(
      t,
      createServer((_, response) => response.end(JSON.stringify(keySet)))
    )
    const auditFile = join(t.testdir(), 'audit.jsonl')
    const { stdout } = await promisify(execFile)('/bin/sh', [
      '-c',
      'ulimit -n 100; exec "$0" "$@"',
      process.execPath,
      script,
      upstream.url,
      jwksUri,
      kid,
      auditFile
    ])
    const message = /no file descriptor left.*\(ulimit -n\)/
    const refused = { code: 'too_many', message, data: { limit: 'descriptors', upstream: 'files' } }
    const { without, again, messages } = JSON.parse(stdout) as Record<string, unknown>
    t.match(without, { stdio: refused, http: refused, fault: message }, 'readiness says so')
    t.match(without, { key: { code: 'unavailable' } }, 'no token is refused for a key that could not be fetched')
    t.match(without, { audit: { code: 'EMFILE' } }, 'whoever waits for the record is told')
    const done = { done: true }
    t.same(again, { stdio: { connected: true }, http: { connected: true }, key: done, audit: done })
    t.equal(await readFile(auditFile, 'utf8'), '{}\n')
    t.match(messages, [message, 'there are file descriptors again'], 'the log says so once')
  }
)
