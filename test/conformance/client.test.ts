// The client half of the official suite against the gateway's own half of a client: its server is the upstream.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { type ClientRun, drive } from './driver.ts'
import { clientScored } from './figures.ts'
import { clientGaps } from './gaps.ts'
import { type Check, requirementsOf, runClientSuite } from './suite.ts'

const command = `${process.execPath} ${fileURLToPath(new URL('driver-command.ts', import.meta.url))}`

/**
 * Each is a gateway, and a client with patience of its own. One at a time: where the machine is so busy that a call
 * overtakes the GET stream of its session, the suite's servers send what belongs there nowhere, or the answer there.
 */
const atOnce = 1

/** Whether these are in order depends on what the caller does, and on which methods there still are. */
const notOurs = ({ id, status, name }: Check): boolean =>
  status === 'SKIPPED' &&
  (id.startsWith('sep-2575-client-declares-') ||
    /McpMethodHeader_(?:initialize|notifications_initialized)$/.test(name ?? ''))

/** The gateway leads nobody on to such a server, so there is no account to use. */
const refused = new Set(['auth/resource-mismatch', 'auth/metadata-issuer-mismatch'])

const isFault = (check: Check): boolean => check.status !== 'SUCCESS' && check.status !== 'INFO' && !notOurs(check)

for (const [revision, scored] of Object.entries(clientScored)) {
  t.test(`the suite finds no fault with the gateway as a client of ${revision}`, async (t) => {
    const driven: string[] = []
    const { scored: counted, unscored } = await requirementsOf(revision, 'client')
    t.equal(counted.length, scored, `${scored} scenarios count`)
    const port = await serveDriver(t, driven, counted.length + unscored.length)
    const run = await runClientSuite(command, revision, { GATEHOUSE_DRIVER: port })
    for (const { scenario, checks } of [...run.scored, ...run.unscored]) {
      const found = checks.filter(isFault)
      const expected = clientGaps.find((gap) => gap.scenario === scenario)?.checks ?? []
      t.same([...new Set(found.map(({ id }) => id))], expected, scenario, { found })
      t.ok(
        checks.some(({ status }) => status === 'SUCCESS'),
        `${scenario}: the suite has seen something`
      )
      t.not(driven.includes(scenario), refused.has(scenario), `${scenario}: how far the client has come`, {
        output: refused.has(scenario) ? '' : run.output
      })
    }
  })
}

/**
 * @param all how many clients the suite starts. None begins before all have started: their servers share a process, and
 *   would be slow to answer the first ones
 * @returns the port at which they say what to do
 */
async function serveDriver(t: Test, driven: string[], all: number): Promise<string> {
  const waiting: Array<() => Promise<void>> = []
  let running = 0
  let started = 0
  const next = async (): Promise<void> => {
    if (running === atOnce) return
    const run = waiting.shift()
    if (run === undefined) return
    running++
    await run()
    running--
    await next()
  }
  const answer = async (socket: Socket, run: ClientRun): Promise<void> => {
    try {
      await drive(run)
      driven.push(run.scenario)
      socket.end()
    } catch (err) {
      socket.end(inspect(err))
    }
  }
  const server = createServer((socket) => {
    socket.on('error', () => {})
    createInterface(socket).once('line', (line) => {
      waiting.push(() => answer(socket, JSON.parse(line) as ClientRun))
      started++
      if (started === all) for (let n = 0; n < atOnce; n++) void next()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return String((server.address() as AddressInfo).port)
}
