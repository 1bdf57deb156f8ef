// A process that has no file descriptor left: what needs one fails by a limit of the gateway, and nothing else does.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { startUpstream } from '../kit/upstream.ts'

const script = new URL('../kit/out-of-descriptors.ts', import.meta.url).pathname

t.test(
  'neither a stdio nor an HTTP upstream is blamed, and both are connected as soon as there are some',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(upstream.close)
    const { stdout } = await promisify(execFile)('/bin/sh', [
      '-c',
      'ulimit -n 100; exec "$0" "$@"',
      process.execPath,
      script,
      upstream.url
    ])
    const message = /no file descriptor left.*\(ulimit -n\)/
    const refused = { code: 'too_many', message, data: { limit: 'descriptors', upstream: 'files' } }
    const { without, again, messages } = JSON.parse(stdout) as Record<string, unknown>
    t.match(without, { stdio: refused, http: refused, fault: message }, 'readiness says so')
    t.same(again, { stdio: { connected: true }, http: { connected: true } })
    t.match(messages, [message, 'there are file descriptors again'], 'the log says so once')
  }
)
