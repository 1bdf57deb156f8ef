// A server of a test on a free port of loopback, closed with the test and with everything still connected to it.

import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Teardown {
  teardown(close: () => unknown): unknown
}

/** @returns the origin, such as http://127.0.0.1:40123 */
export async function listen(t: Teardown, server: Server): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
