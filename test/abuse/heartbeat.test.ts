// Attack: thousands of streams are open, all of which are checked at the same time: with each heartbeat, and after a
// reload. Few are in each turn of the event loop.

import { writeFile, readFile } from 'node:fs/promises'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { type EventStream, openEvents } from '../kit/events.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

const streams = 2_000
/** In one turn a beat of so many takes 90 ms, and a check of them without a beat half of it. */
const maxTurnMs = 30

t.test('a heartbeat over 2,000 streams, and a reload, hold up nobody', async (t) => {
  const rates = { requestsPerSecondPerPrincipal: 100_000, requestsPerSecondPerTenant: 100_000 }
  const gateway = await attacked(t, { limits: { ...rates, sessionsPerPrincipal: streams * 2 }, watchTurns: true })
  const opened: EventStream[] = []
  t.teardown(() => opened.forEach((stream) => stream.cut()))
  async function open(): Promise<void> {
    const { headers } = await legacyClient(gateway.url, keys.attacker)
    const stream = await openEvents(gateway.url, { method: 'GET', headers })
    if (stream.status !== 200) t.fail(`${stream.status} ${stream.text()}`)
    opened.push(stream)
  }
  while (opened.length < streams) await Promise.all(Array.from({ length: 40 }, open))

  const beats = (): number => Math.min(...opened.map((stream) => stream.text().split('keep-alive').length))
  const ofBeat = await gateway.longestTurnMs(maxTurnMs, async () => {
    const before = beats()
    await until('each has a beat more, the control', () => beats() > before, 60_000)
  })
  t.ok(ofBeat < maxTurnMs, `the longest turn of a beat took ${ofBeat} ms of CPU`)

  const config = JSON.parse(await readFile(gateway.configFile, 'utf8')) as { tenants: { acme: { auth: unknown } } }
  config.tenants.acme.auth = { keys: [{ name: 'colleague', key: keys.colleague }] }
  await writeFile(gateway.configFile, JSON.stringify(config))
  await gateway.turns()
  gateway.signal('SIGHUP')
  await Promise.all(opened.map(({ ended }) => ended))
  t.ok(
    opened.every(({ closed }) => closed),
    'after a reload without their key all are over'
  )
})
