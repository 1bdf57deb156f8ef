// Replicas whose clocks differ.

import t from 'tap'
import { canaries, mirror, mirrored } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'

const preload = new URL('../kit/shifted-clock.ts', import.meta.url).pathname
const shifted = (ms: number) => ({
  env: { NODE_OPTIONS: `--import=${preload}`, TEST_CLOCK_SHIFT_MS: String(ms) }
})

const web = await canaries(t)
const rig = await startReplicas(t, web.behind, [{}, shifted(25_000), shifted(300_000)])

t.test('clocks that differ by less than a minute change nothing', async (t) => {
  for (const home of [0, 1]) {
    const client = await sessionAt(rig.at(home))
    const names = [home, 1 - home, home].map((node, n) => ({ node, canary: `home ${home}, call ${n}` }))
    for (const { node, canary } of names) t.match(await mirror(rig.at(node), client, canary), mirrored(canary))
    t.equal(new Set(names.map(({ canary }) => web.sessionOf(canary))).size, 1, 'one session at its upstream')
  }
})

t.test(
  'clocks that differ by more: replicas do not hear each other, say so, and still run each call once',
  async (t) => {
    const client = await sessionAt(rig.at(0))
    t.match(await mirror(rig.at(0), client, 'at home'), mirrored('at home'))
    t.match(await mirror(rig.at(2), client, 'far ahead'), mirrored('far ahead'))
    await rig.nodes[2]?.logged('it has taken the session over', ({ msg }) => /takes over/.test(String(msg)))
    t.equal(web.sessionOf('far ahead'), web.sessionOf('at home'), 'with the session at the server')
    t.match(await mirror(rig.at(2), client, 'once more'), mirrored('once more'))
    t.equal(web.sessionOf('once more'), web.sessionOf('far ahead'))
    await rig.nodes[0]?.logged('the reason', ({ problem }) => /do the clocks differ/.test(String(problem)))
    for (const canary of ['at home', 'far ahead', 'once more']) t.equal(web.executed.get(canary), 1)
  }
)
