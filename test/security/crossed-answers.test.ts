// Attack (the class of CVE-2026-25536): sessions use the same JSON-RPC ids and progress tokens at the same time over
// one shared upstream connection, to get each other's answers.

import t from 'tap'
import { acmeGateway, credentials } from '../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'

for (const isolation of ['shared', 'principal', 'session']) {
  t.test(`sixty sessions with equal ids get their own answers over ${isolation} connections`, async (t) => {
    const made = await acmeGateway(t, { script: { answers: 'sse' }, isolation })
    const clients: LegacyClient[] = []
    for (let n = 0; n < 60; n++) {
      const kind = credentials[n % 2] ?? 'JWT'
      clients.push(await legacyClient(made.url(), await made.bearer(kind, n % 4 < 2 ? 'ada' : 'bob')))
    }
    const rounds = await Promise.all(
      clients.flatMap((client, n) =>
        [1, 2, 3].map(async (round) => {
          const canary = `canary-${n}-${round}-${'x'.repeat(n)}`
          const [echo, progress] = await Promise.all([
            client.request(
              'tools/call',
              { name: 'echo', arguments: { canary }, _meta: { progressToken: 1 } },
              { id: round }
            ),
            client.request(
              'tools/call',
              { name: 'progress', arguments: { steps: 1 + (n % 5) }, _meta: { progressToken: 1 } },
              { id: -round }
            )
          ])
          return { round, canary, steps: 1 + (n % 5), echo, progress }
        })
      )
    )
    let wrong = 0
    for (const { round, canary, steps, echo, progress } of rounds) {
      if (
        echo.json.id !== round ||
        echo.json.result.structuredContent.arguments.canary !== canary ||
        echo.text.split('canary-').length !== 3
      )
        wrong++
      const heard = progress.messages
        .slice(0, -1)
        .map(({ params }) => [params.progressToken, params.progress, params.total])
      if (JSON.stringify(heard) !== JSON.stringify(Array.from({ length: steps }, (_, at) => [1, at + 1, steps])))
        wrong++
    }
    t.equal(wrong, 0)
    t.equal(rounds.length, 180)
  })
}
