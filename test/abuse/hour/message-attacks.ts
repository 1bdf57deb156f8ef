// Attacks by callers with messages: what is right as HTTP, and too much, too deep, forged or never ended as MCP.

import { randomBytes, randomUUID } from 'node:crypto'
import { clientKinds, converse } from '../../fuzz/clients.ts'
import { type LegacyClient, legacyClient, open, send } from '../../kit/client.ts'
import { modernMessage, modernRequest } from '../../kit/modern-client.ts'
import { note } from '../memory-attacks.ts'
import { type CallerAttack, type HourAttack, pause, soon } from './connection-attacks.ts'

const loginRedirect = 'http://127.0.0.1:1/cb'

async function sessionOf(attack: HourAttack, key: string, capabilities = {}, revision = '2025-11-25') {
  const client = await legacyClient(attack.url, key, revision, capabilities)
  attack.sessions.push(client)
  return client
}

const post = (attack: HourAttack, client: LegacyClient, body: string) =>
  send(attack.url, { headers: client.headers, body, signal: soon(attack) })

const callText = (id: unknown, args: string, name = 'calm__echo'): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`

const many = <T>(count: number, one: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => one(at)))

export const messageAttacks: Readonly<Record<string, CallerAttack>> = {
  async 'large bodies side by side'(attack, key) {
    const client = await sessionOf(attack, key)
    const texts = [
      () => `{"text":"${'x'.repeat(4_000_000)}"}`,
      () => `{"text":"${'\\u00e4'.repeat(600_000)}"}`,
      () => `{"n":[${'{},'.repeat(100_000)}1]}`,
      () => `{"n":[${'1e999,'.repeat(attack.chance.pick([3_000, 240_000]))}1]}`,
      () => `{"n":[${'"y",'.repeat(200_000)}1]}`,
      () => `{${Array.from({ length: 9_000 }, (_, at) => `"m${at}":${at}`).join()}}`
    ]
    await many(6, async (id) => {
      note(attack, String((await post(attack, client, callText(id, attack.chance.pick(texts)()))).status))
    })
    await client.end()
  },
  async 'nesting without end'(attack, key) {
    const client = await sessionOf(attack, key)
    const depth = attack.chance.pick([50, 1_000, 400_000])
    const [open, close] = attack.chance.pick([
      ['[', ']'],
      ['{"a":', '}']
    ] as const)
    await many(4, async (id) => {
      const text = `${open.repeat(depth)}1${close.repeat(depth)}`
      note(attack, String((await post(attack, client, callText(id, `{"n":${text}}`))).status))
    })
    await client.end()
  },
  async 'ids that are long, doubled and odd'(attack, key) {
    const client = await sessionOf(attack, key)
    const ids: unknown[] = ['x'.repeat(100_000), 1, 1, 1, '1', -1, 1e300, 0.5, null, '', '__proto__', {}, randomUUID()]
    await many(40, () => post(attack, client, callText(attack.chance.pick(ids), '{}')))
  },
  async 'sessions that nobody ends'(attack, key) {
    const capabilities = { sampling: {}, elicitation: {}, experimental: { [randomUUID()]: { x: 'x'.repeat(2_000) } } }
    for (let at = 0; at < 10 && !attack.signal.aborted; at++) {
      const client = await sessionOf(attack, key, attack.chance.chance(0.5) ? capabilities : {})
      if (attack.chance.chance(0.5)) await client.request('tools/list', {}, { signal: soon(attack) })
    }
  },
  async 'subscriptions and streams of 2026-07-28'(attack, key) {
    const uris = Array.from(
      { length: attack.chance.pick([1, 100, 1_000]) },
      (_, at) => `long://item/${at}${'x'.repeat(500)}`
    )
    const params = { notifications: { toolsListChanged: true, resourceSubscriptions: uris } }
    const { headers, body } = modernMessage('subscriptions/listen', params, { token: key })
    await many(20, async () => {
      const response = await open(attack.url, { method: 'POST', headers, body, signal: soon(attack, 1_500) })
      note(attack, String(response.statusCode))
      if (attack.chance.chance(0.5)) response.pause()
      else response.resume()
      await pause(attack, 1_000)
      response.destroy()
    })
  },
  async 'completions of 100 KB'(attack, key) {
    const client = await sessionOf(attack, key)
    const value = 'x'.repeat(100_000)
    await many(20, () => {
      const params = { ref: { type: 'ref/prompt', name: 'calm__greet' }, argument: { name: 'who', value } }
      return client.request('completion/complete', params, { signal: soon(attack) })
    })
  },
  async 'batches of the most messages'(attack, key) {
    const client = await sessionOf(attack, key, {}, '2025-03-26')
    const message = (id: number): string =>
      attack.chance.pick([callText(id, '{}'), `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`, '{}', '[]', '7'])
    await many(6, () => {
      const count = attack.chance.pick([10, 50, 5_000])
      return post(attack, client, `[${Array.from({ length: count }, (_, id) => message(id)).join()}]`)
    })
    await client.end()
  },
  async 'calls that are cancelled at once'(attack, key) {
    const client = await sessionOf(attack, key)
    await many(20, async (id) => {
      const name = attack.chance.pick(['silent__hang', 'legacy__slow', 'calm__slow'])
      const signal = soon(attack, 1_000)
      const answer = client.request('tools/call', { name, arguments: {} }, { id, signal }).catch(() => {})
      await client.notify('notifications/cancelled', { requestId: id })
      await answer
    })
    await many(20, () => {
      const params = { name: 'modern__slow', arguments: {} }
      const signal = soon(attack, attack.chance.below(200) + 1)
      return modernRequest(attack.url, 'tools/call', params, { token: key, signal }).catch(() => {})
    })
  },
  async 'questions that nobody answers'(attack, key) {
    const capabilities = { elicitation: {}, sampling: {}, roots: {} }
    const text = 'x'.repeat(attack.chance.pick([1, 100_000]))
    await many(15, async () => {
      const upstream = attack.chance.pick(['legacy', 'modern', 'calm'])
      const name = `${upstream}__${attack.chance.pick(['elicit', 'sample', 'roots'])}`
      const options = { token: key, capabilities, signal: soon(attack) }
      await modernRequest(attack.url, 'tools/call', { name, arguments: { text } }, options).catch(() => {})
    })
  },
  async 'states and input that are forged'(attack, key) {
    const inputResponses = Object.fromEntries(
      Array.from({ length: attack.chance.pick([1, 5_000]) }, (_, at) => [`i${at}`, { action: 'accept', content: {} }])
    )
    await many(10, async () => {
      const requestState = randomBytes(attack.chance.pick([12, 3_000, 300_000])).toString('base64url')
      const params = { name: 'modern__elicit', arguments: {}, inputResponses, requestState }
      note(
        attack,
        String((await modernRequest(attack.url, 'tools/call', params, { token: key, signal: soon(attack) })).status)
      )
    })
  },
  async 'cursors and tasks that are forged'(attack, key) {
    const client = await sessionOf(attack, key)
    await many(20, () => {
      const forged = randomBytes(attack.chance.pick([3, 60, 50_000])).toString('base64url')
      const [method, params] = attack.chance.pick<[string, object]>([
        ['tools/list', { cursor: forged }],
        ['tasks/get', { taskId: forged }],
        ['tasks/list', { cursor: forged }],
        ['resources/read', { uri: `long://item/${forged}` }],
        ['prompts/get', { name: forged }]
      ])
      return client.request(method, params, { signal: soon(attack) })
    })
    await client.end()
  },
  async 'more requests than anybody may send'(attack, key) {
    const client = await sessionOf(attack, key)
    for (let round = 0; round < 10 && !attack.signal.aborted; round++)
      await many(60, async () => {
        const method = attack.chance.pick(['ping', 'tools/list', 'resources/list', 'logging/setLevel'])
        note(attack, String((await client.request(method, { level: 'debug' }, { signal: soon(attack) })).status))
      })
    await client.end()
  },
  async 'lists for ever other capabilities'(attack, key) {
    await many(10, () => {
      const capabilities = { experimental: { [randomUUID()]: {} }, extensions: { [randomUUID()]: {} } }
      const method = attack.chance.pick(['tools/list', 'server/discover', 'resources/list'])
      return modernRequest(attack.url, method, {}, { token: key, capabilities, signal: soon(attack) })
    })
  },
  async 'a flood at the login front'(attack) {
    const front = new URL('/login/acme', attack.url).href
    const json = { 'content-type': 'application/json' }
    const name = 'x'.repeat(attack.chance.pick([10, 7_000, 50_000]))
    const body = JSON.stringify({
      redirect_uris: [loginRedirect],
      client_name: name,
      token_endpoint_auth_method: 'none'
    })
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await many(10, async () => {
      const answer = await attack.chance.pick([
        () => send(`${front}/reg`, { headers: json, body, signal: soon(attack) }),
        () => send(`${front}/auth?client_id=${randomUUID()}`, { method: 'GET', signal: soon(attack) }),
        () => send(`${front}/token`, { headers: form, body: 'grant_type=refresh_token&x=1', signal: soon(attack) }),
        () => send(`${front}/.well-known/openid-configuration`, { method: 'GET', signal: soon(attack) })
      ])()
      note(attack, String(answer.status))
    })
  },
  async 'conversations of the fuzz run'({ url, chance, ended }, key) {
    const outcome = { results: 0, faults: [] as string[] }
    await converse(chance.pick(clientKinds), chance, { url, key }, outcome)
    for (const fault of outcome.faults) ended.set(`fault: ${fault}`, 1)
  }
}
