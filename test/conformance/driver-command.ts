// The command that the client half of the suite starts for each scenario. It hands what the suite says on to the test
// (at the port GATEHOUSE_DRIVER), which has all that is needed loaded already.

import { once } from 'node:events'
import { createConnection } from 'node:net'

const {
  GATEHOUSE_DRIVER: port,
  MCP_CONFORMANCE_SCENARIO: scenario = '',
  MCP_CONFORMANCE_PROTOCOL_VERSION: version = '2025-11-25',
  MCP_CONFORMANCE_CONTEXT: context = '{}'
} = process.env

const socket = createConnection(Number(port), '127.0.0.1')
socket.write(
  `${JSON.stringify({ scenario, version, context: JSON.parse(context) as unknown, url: process.argv.at(-1) })}\n`
)
let failure = ''
socket.setEncoding('utf8').on('data', (text: string) => {
  failure += text
})
await once(socket, 'end')
socket.end()
process.stderr.write(failure)
process.exitCode = failure === '' ? 0 : 1
