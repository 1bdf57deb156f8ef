// A port for a program that cannot be asked which one it took, or that has to come back on the one it had.

import { once } from 'node:events'
import { createServer } from 'node:net'

// Below what systems hand out by themselves (Linux from 32768, others from 49152): nobody's outgoing connection takes
// it meanwhile.
const lowest = 12_000
const count = 18_000

/** @returns a port of loopback that nobody listens on */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = lowest + Math.floor(Math.random() * count)
    if (await isFree(port)) return port
  }
  throw new Error('no free port of loopback in fifty tries')
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const bound = once(probe, 'listening').then(
    () => true,
    () => false
  )
  probe.listen(port, '127.0.0.1')
  if (!(await bound)) return false
  probe.close()
  await once(probe, 'close')
  return true
}
