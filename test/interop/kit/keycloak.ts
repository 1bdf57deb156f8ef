// A real Keycloak with the realm of the profile `idp` of docker-compose.yml, its administrator, and a person who signs in.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { browser, type Landing } from '../../kit/browser.ts'
import { freePort } from '../../kit/free-port.ts'
import { until, type Teardown } from '../../kit/until.ts'
import { redirectUri } from '../../login/kit.ts'

const root = join(import.meta.dirname, '..', '..', '..')
export const clientSecret = 'the-secret-of-the-gateway'
const password = 'the-password-of-ada'
const administrator = 'the-password-of-the-administrator'
/** It builds itself at its start, in half a minute of CPU time. */
const startMs = 400_000

type Json = Record<string, unknown>
type Browser = ReturnType<typeof browser>

/** @returns its origin, with the realm `acme`; it ends with the test */
export async function startKeycloak(t: Teardown, home: string, gatewayPort: number): Promise<string> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  await mkdir(join(home, 'data', 'import'), { recursive: true })
  await cp(join(root, 'deploy/compose/idp/keycloak.json'), join(home, 'data', 'import', 'acme.json'))
  const child = spawn(join(home, 'bin', 'kc.sh'), ['start-dev', '--import-realm'], {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      IDP_CLIENT_SECRET: clientSecret,
      IDP_PASSWORD: password,
      GATEHOUSE_IDP_PORT: String(gatewayPort),
      KC_HOSTNAME: origin,
      KC_HTTP_PORT: String(port),
      KC_DB: 'dev-mem',
      KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
      KC_BOOTSTRAP_ADMIN_PASSWORD: administrator
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // The script and the virtual machine, which end together.
    detached: true
  })
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said.push(text)
    })
  t.teardown(async () => {
    if (child.exitCode !== null || child.pid === undefined) return
    process.kill(-child.pid, 'SIGKILL')
    await once(child, 'exit')
  })
  const isThere = (): Promise<boolean> =>
    fetch(`${origin}/realms/acme/.well-known/openid-configuration`).then(
      async ({ ok, body }) => (await body?.cancel(), ok),
      () => false
    )
  await until(
    'Keycloak listens',
    () => {
      if (child.exitCode !== null) throw new Error(`Keycloak ended with ${child.exitCode}: ${said.slice(-8).join('')}`)
      return isThere()
    },
    startMs
  )
  return origin
}

/** Its admin REST API, with a token of its own for each request: they last a minute. */
export function administration(keycloak: string) {
  async function token(): Promise<string> {
    const parameters = { grant_type: 'password', client_id: 'admin-cli', username: 'admin', password: administrator }
    const url = `${keycloak}/realms/master/protocol/openid-connect/token`
    const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(parameters) })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  return async (method: string, path: string, sent?: object): Promise<Json[]> => {
    const response = await fetch(`${keycloak}/admin/realms/acme${path}`, {
      method,
      headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
      ...(sent === undefined ? {} : { body: JSON.stringify(sent) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? [] : ([JSON.parse(text)].flat() as Json[])
  }
}

const isSignIn = ({ html }: Landing): boolean => html.includes('id="kc-form-login"')

/** Fills in the page where Keycloak asks for a name and a password. */
function signIn(person: Browser, page: Landing, secret: string): Promise<Landing> {
  const target = /<form id="kc-form-login"[^>]* action="([^"]+)"/.exec(page.html)?.[1]?.replaceAll('&amp;', '&')
  if (target === undefined) throw new Error(`this is not where Keycloak asks: ${page.status} ${page.html}`)
  return person.go(target, redirectUri, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username: 'ada', password: secret }).toString()
  })
}

/** A browser whose person signs in wherever Keycloak asks, with the right password unless told otherwise. */
export function ada(secret = password): Browser & { readonly asked: () => number } {
  const person = browser()
  let asked = 0
  return {
    ...person,
    asked: () => asked,
    async go(...request) {
      const page = await person.go(...request)
      if (!isSignIn(page)) return page
      asked += 1
      return await signIn(person, page, secret)
    }
  }
}
