// rediss: the server has to prove its name.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import { redis } from '../kit/redis.ts'
import { recorded } from './kit.ts'

// Self-signed for the name `localhost`, valid for a hundred years, trusted by nobody else.
const fixture = (name: string): Promise<string> => readFile(join(import.meta.dirname, '../kit/tls', name), 'utf8')

t.test('a certificate that is trusted and has the right name is accepted, any other is not', async (t) => {
  const plain = new URL((await redis(t)).url)
  const [key, cert] = await Promise.all([fixture('localhost.key'), fixture('localhost.crt')])
  // A terminator before a real Redis: not every build of Redis speaks TLS.
  const front = tls.createServer({ key, cert }, (socket) => {
    const back = connect(Number(plain.port), plain.hostname)
    socket.on('error', () => back.destroy()).on('close', () => back.destroy())
    back.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.pipe(back).pipe(socket)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  const { port } = front.address() as { port: number }
  const trusted = tls.getCACertificates('default')
  t.teardown(() => {
    tls.setDefaultCACertificates(trusted)
    front.close()
  })

  const ping = async (host: string): Promise<string> => {
    const { log, text } = recorded()
    const store = await createRedisStore({ url: `rediss://${host}:${port}`, clock: Date, log })
    const answer = await store.ping().then(
      () => 'answered',
      (error: { code: string }) => `${error.code} ${text()}`
    )
    await store.close()
    return answer
  }
  t.match(await ping('localhost'), /^unavailable .*SELF_SIGNED/)
  tls.setDefaultCACertificates([...trusted, cert])
  t.equal(await ping('localhost'), 'answered')
  t.match(await ping('127.0.0.1'), /^unavailable .*ERR_TLS_CERT_ALTNAME_INVALID/)
})
