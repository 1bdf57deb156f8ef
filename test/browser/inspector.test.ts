// The web page of the MCP Inspector, in a real browser: from the URL of an endpoint alone to the result of a tool, by
// the login front of the tenant.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startChromium } from '../kit/chromium.ts'
import { freePort } from '../kit/free-port.ts'
import { until, type Teardown } from '../kit/until.ts'
import { loginGateway } from '../login/kit.ts'

const launcher = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url)
)

/** @returns the address of its page */
async function startInspector(t: Teardown, home: string, endpoint: string): Promise<string> {
  const [port, sandboxPort] = [await freePort(), await freePort()]
  const child = spawn(process.execPath, [launcher, '--web', '--transport', 'http', '--server-url', endpoint], {
    cwd: home,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      HOST: 'localhost',
      CLIENT_PORT: String(port),
      MCP_SANDBOX_PORT: String(sandboxPort),
      MCP_AUTO_OPEN_ENABLED: 'false',
      MCP_INSPECTOR_SECRET_STORE: 'memory',
      // Of its own page, which is on loopback.
      DANGEROUSLY_OMIT_AUTH: 'true'
    },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const address = `http://localhost:${port}`
  await until('the Inspector is up', () => output.includes(address))
  return address
}

t.test('a person who has only the URL signs in, connects, and calls a tool', async (t) => {
  const front = await loginGateway(t)
  const address = await startInspector(t, t.testdir(), front.url())
  const { page } = await (await startChromium(t)).open(address)
  await page.getByRole('switch').first().click({ force: true })
  const allow = page.getByRole('button', { name: 'Allow', exact: true })
  await allow.waitFor()
  const consent = await page.innerText('body')
  t.match(consent, /Allow MCP Inspector\?/)
  t.match(consent, front.url())
  await allow.click()
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.getByText('Tools', { exact: true }).first().click()
  await page.getByText('files__echo', { exact: true }).first().click()
  await page
    .getByRole('button', { name: /(?:Run|Execute|Call)/ })
    .first()
    .click()
  const call = await until('the call is logged', () =>
    front.log.find(({ msg, method }) => msg === 'call' && method === 'tools/call')
  )
  t.match(call, { outcome: 'ok', user: 'ada', tool: 'echo' })
})
