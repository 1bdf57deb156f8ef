// A rolling restart: each replica is replaced, one after the other, while clients of both eras and of HTTP+SSE call, are
// asked something and answer, and listen.

import { join } from 'node:path'
import t from 'tap'
import { listeningClient } from '../chaos/listening-client.ts'
import { modernClient, sessionClient } from '../chaos/clients.ts'
import { streamViolations } from '../chaos/heard.ts'
import { violations } from '../chaos/history.ts'
import { createLoad } from '../chaos/load.ts'
import { serversOf } from '../chaos/servers.ts'
import { httpSseLoad } from '../chaos/sse-client.ts'
import { random } from '../fuzz/random.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { stdioCanaryServer } from '../kit/canary-server.ts'
import { canaries } from './held-calls.ts'
import { startReplicas } from './rig.ts'
import { rollingLimits, rollUnderLoad } from './rolling.ts'

const web = await canaries(t)
const journal = join(t.testdir(), 'journal')
const rig = await startReplicas(t, {
  upstreams: { ...web.behind.upstreams, local: { ...stdioCanaryServer, env: { MIRROR_JOURNAL: journal } } },
  endpoints: { ...web.behind.endpoints, all: { upstreams: ['web', 'local'] } },
  limits: rollingLimits
})

t.test('three replicas replaced under load: no request fails, no answer and no notification is lost', async (t) => {
  const starts = rig.nodes.map(() => () => rig.start())
  const load = createLoad(rig.url('t/acme/all/mcp'), keyOf.bob, 400)
  const clients = [
    listeningClient(load, random(1), Infinity),
    ...[sessionClient, sessionClient, modernClient, httpSseLoad].map((client, n) => client(load, random(n + 2)))
  ]
  const { failed, calls } = await rollUnderLoad(t, rig, web, starts)
  load.over = true
  await Promise.all(clients)

  t.same(failed, [])
  t.ok(calls > 60, `${calls} calls`)
  const { history, heard } = load
  t.same(violations(history, await serversOf(web, journal)), [])
  t.same(streamViolations(heard), [])
  // Over HTTP+SSE a session ends with its stream, and so with its replica: a request may come too late for it.
  const tooLate = ({ era, outcome }: (typeof history)[number]): boolean => era === 'sse' && outcome.kind === 'refused'
  const unanswered = history.filter((call) => call.outcome.kind !== 'answered' && !tooLate(call))
  t.same(unanswered, [])
  t.ok(history.filter(tooLate).length < history.length / 20, 'few came too late')
  t.ok(history.filter(({ asked }) => (asked?.questions ?? 0) > 0).length > 3, 'clients were asked')
  const resumed = heard.reduce((sum, each) => sum + each.resumed, 0)
  t.ok(resumed > 0, `streams were resumed ${resumed} times`)
})
