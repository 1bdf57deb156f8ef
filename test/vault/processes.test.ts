// `auth: userSecret` of a stdio upstream: each person has processes of their own, with their secret in their
// environment alone.

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway, type TestGateway } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'

const server = new URL('../kit/stdio-server.ts', import.meta.url).pathname
/** A word that no rule would take for a secret by its form, under a name that does not sound like one. */
const secretOf = { ada: 'wonderland', bob: 'springfield' }
type Name = keyof typeof secretOf

const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
const optionsOf = (...others: readonly string[]) => ({
  upstreams: {
    notes: {
      command: process.execPath,
      args: [server, ...others],
      auth: { type: 'userSecret', env: 'NOTES_PLACE' },
      isolation: 'shared'
    }
  },
  auth: { keys: (['ada', 'bob'] as const).map((name) => ({ name, key: keyOf[name] })) },
  top: { vault }
})
const make = (t: Parameters<typeof gateway>[0]): Promise<TestGateway> => gateway(t, optionsOf())

async function enter(made: TestGateway, name: Name) {
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf[name])
  return { tab, page: await submit(tab, page, 'secret', { secret: secretOf[name] }) }
}

const environmentOf = (pid: string): string => readFileSync(`/proc/${pid}/environ`, 'utf8')

t.test('each person has a process, their secret is in its environment alone, and it ends with it', async (t) => {
  const made = await make(t)
  const clients = Object.fromEntries(
    await Promise.all(
      (['ada', 'bob'] as const).map(async (name) => {
        const page = await enter(made, name)
        const client = await legacyClient(made.url(), keyOf[name])
        const call = async (tool: string): Promise<string> => {
          const { json, text } = await client.request('tools/call', { name: `notes__${tool}`, arguments: {} })
          t.ok(json.result?.content, text)
          return json.result.content[0].text as string
        }
        return [name, { ...page, call, pid: await call('pid') }] as const
      })
    )
  ) as Record<Name, Awaited<ReturnType<typeof enter>> & { call(tool: string): Promise<string>; pid: string }>
  const { ada, bob } = clients
  t.not(ada.pid, bob.pid)
  t.equal(await ada.call('pid'), ada.pid, 'the same one for all calls of a person')
  const otherHost = await modernRequest(
    made.url(),
    'tools/call',
    { name: 'notes__pid', arguments: {} },
    { token: keyOf.ada }
  )
  t.equal(otherHost.json.result.content[0].text, ada.pid, 'and for all their hosts')
  t.match(environmentOf(ada.pid), `NOTES_PLACE=${secretOf.ada}\0`)
  t.notMatch(environmentOf(ada.pid), secretOf.bob)
  t.notMatch(environmentOf(bob.pid), secretOf.ada)
  t.notMatch(environmentOf('self'), secretOf.ada)
  const shown = await ada.call('env')
  t.match(shown, /NOTES_PLACE/)
  t.notMatch(shown, secretOf.ada, 'what the server repeats of it is masked')
  t.notMatch(JSON.stringify(made.log), new RegExp(`${secretOf.ada}|${secretOf.bob}`))

  await submit(ada.tab, ada.page, 'disconnect')
  await until('the process of ada has ended', () => {
    try {
      process.kill(Number(ada.pid), 0)
      return false
    } catch {
      return true
    }
  })
  t.equal(await bob.call('pid'), bob.pid, 'that of bob goes on')
})

t.test('administrators see what a process of a person writes, without their secret in any spelling', async (t) => {
  const made = await adminGateway(t, optionsOf())
  const secret = 'the "pass phrase" of ada/1'
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
  await submit(tab, page, 'secret', { secret })
  const ada = await legacyClient(made.url(), keyOf.ada)
  const forms = [secret, JSON.stringify(secret), encodeURIComponent(secret)]
  const text = forms.map((form) => `cannot open ${form} of the tests\n`).join('')
  const answer = await ada.request('tools/call', { name: 'notes__stderr', arguments: { text } })
  t.ok(answer.json.result, answer.text)
  const lines = await until('its lines are there', async () => {
    const { json } = await made.call('GET', '/v1/tenants/acme/upstreams/notes/stderr', { key: adminKeys.acme })
    const { items } = json as { items: Array<{ text: string }> }
    return items.length < forms.length ? undefined : items.map((each) => each.text)
  })
  t.same(lines, ['cannot open *** of the tests', 'cannot open "***" of the tests', 'cannot open *** of the tests'])
  t.notMatch(JSON.stringify(made.log), /pass.{1,3}phrase/)
})

t.test('a secret is not given to a command with other arguments', async (t) => {
  const made = await make(t)
  const { tab, page: before } = await enter(made, 'ada')
  const ada = await legacyClient(made.url(), keyOf.ada)
  const call = async (): Promise<string> =>
    (await ada.request('tools/call', { name: 'notes__pid', arguments: {} })).text
  t.notMatch(await call(), /[Cc]onnect/)
  t.ok(made.reload(configOf({ ...optionsOf(), limits: { sessionsPerPrincipal: 50 } })))
  t.notMatch(await call(), /[Cc]onnect/, 'where it stays the same, it is used')
  t.ok(made.reload(configOf(optionsOf('another-program'))))
  t.match(await call(), /Connect your account of notes first/)
  await submit(tab, before, 'secret', { secret: secretOf.ada })
  t.match(await call(), /Connect your account of notes first/, 'a page that shows the program of before stores nothing')
  const page = await tab.go(`${made.publicUrl}/t/acme/connections`, 'none')
  t.match(page.html, /given for another program/)
  await submit(tab, page, 'secret', { secret: secretOf.ada })
  t.notMatch(await call(), /[Cc]onnect/)
})
