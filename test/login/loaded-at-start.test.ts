// The library of the login front is loaded before anybody is served, and not at all where no tenant has a front: it
// takes a fifth of a second, in which the process serves nobody.

import t from 'tap'
import { configOf, key } from '../kit/gateway.ts'
import { gatehouse } from '../e2e/kit/process.ts'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const tellsOfIt = `
import { registerHooks } from 'node:module'
registerHooks({
  resolve(name, context, next) {
    if (name === 'oidc-provider') process.stderr.write('loaded\\n')
    return next(name, context)
  }
})`

for (const hasFront of [true, false])
  t.test(`it is loaded at the start: ${hasFront}`, async (t) => {
    const login = { provider: { issuer: 'http://127.0.0.1:9', clientId: 'gatehouse', clientSecret: 'secret' } }
    const auth = { keys: [{ name: 'test', key }], ...(hasFront && { login }) }
    const config = configOf({ upstreams: {}, auth, top: { publicUrl: 'http://localhost:9' } })
    const file = join(t.testdir(), 'gatehouse.json')
    await writeFile(file, JSON.stringify(config))
    const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(tellsOfIt)}`]
    const running = gatehouse(t, ['serve', '--config', file, '--port', '0'], { nodeArgs })
    await running.ready
    // All that it wrote has come then: the line that says that it is ready is in another pipe.
    await running.stop()
    t.equal(running.stderr.includes('loaded'), hasFront)
  })
