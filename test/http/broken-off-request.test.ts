// A client that hangs up in the middle of its body: no fault of the gateway, and nothing to alarm anybody with.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

t.test('a request that breaks off is no error in the log, and the next one is served', async (t) => {
  const acme = await acmeGateway(t)
  // The gateway waits for the end of the first as part of its request, and for that of the second to read it at all.
  const usual = acme.post(initializeBody())
  for (const request of [usual.replace('application/json\r\n', 'application/json; charset=utf-8\r\n'), usual]) {
    const socket = dial(acme.port)
    socket.write(request.slice(0, -10))
    // Its headers were read: the answer to what follows on another connection comes after that.
    await send(`${acme.publicUrl}/health/live`, { method: 'GET' })
    socket.destroy()
  }
  await until('the end of it is in the log', () =>
    acme.log.some(({ msg }) => /broke off|fault of the gateway/.test(String(msg)))
  )
  t.same(
    acme.log.filter(({ level }) => Number(level) >= 40),
    []
  )
  const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
  t.equal((await send(acme.url(), { headers, body: initializeBody() })).status, 200)
})
