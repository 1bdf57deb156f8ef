// Two people, each with two hosts, and accounts of their own at three upstreams, whose authorization servers differ in
// how the gateway is known there: it registers itself, names its metadata document, or is configured, where `resource`
// is not known. Every call carries the token of its own person at its own upstream, and no token is anywhere else.
// `npm run test:long` makes ten thousand calls (GATEHOUSE_ACCOUNT_CALLS).

import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { adminKeys, adminSection } from '../kit/admin.ts'
import { authorizationServer, type AuthorizationServerOptions } from '../kit/authorization-server.ts'
import { connectAccount, signedIn } from '../kit/connect-page.ts'
import { legacyClient } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { freePort } from '../kit/free-port.ts'
import { configOf } from '../kit/gateway.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { trustedLocalhost } from '../kit/localhost-tls.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { protectedUpstream, type ProtectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { isCall } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { collector } from '../observe/collector.ts'
import { gatehouse } from './kit/process.ts'

const calls = Number(process.env['GATEHOUSE_ACCOUNT_CALLS'] ?? 480)
/** Of each host, at once. */
const atOnce = 25
const people = ['ada', 'bob'] as const
const hosts = ['desk', 'phone'] as const
const names = ['registers', 'documents', 'configured'] as const
type Name = (typeof names)[number]
const client = { clientId: 'gatehouse', clientSecret: 'the-secret_of.gatehouse~at:its/server' }

/** The public side of the gateways: TLS, each request to the next of them. */
async function front(t: Teardown, ports: readonly number[]): Promise<string> {
  const { cert, key } = await trustedLocalhost(t)
  let turn = 0
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    const { method, headers, url: path } = incoming
    const onward = request({ port: ports[turn++ % ports.length], method, headers, path, agent: false }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  // A client on a busy machine would use a connection once more that is just being closed.
  server.keepAliveTimeout = 0
  return (await listen(t, server)).replace('http://127.0.0.1', 'https://localhost')
}

async function setUp(t: Test) {
  const ports = [await freePort(), await freePort()]
  const publicUrl = await front(t, ports)
  const pages = `${publicUrl}/t/acme/connections`
  const upstreams = {} as Record<Name, ProtectedUpstream>
  const ownClient = {
    client_id: client.clientId,
    client_secret: client.clientSecret,
    redirect_uris: [`${pages}/callback`],
    grant_types: ['authorization_code', 'refresh_token']
  }
  const optionsOf: Record<Name, AuthorizationServerOptions> = {
    registers: { clients: [], registration: true },
    documents: { clients: [], documents: true },
    configured: { clients: [ownClient], resource: () => upstreams.configured.url }
  }
  const servers = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await authorizationServer(t, optionsOf[name])] as const))
  ) as Record<Name, Awaited<ReturnType<typeof authorizationServer>>>
  for (const name of names) upstreams[name] = await protectedUpstream(t, servers[name])
  const issuer = await forgingIssuer(t, { resource: `${publicUrl}/t/acme/mcp`, now: Date.now() })
  const store = await redis(t, ['--rdbcompression', 'no'])
  const telemetry = await collector(t)
  const authOf: Record<Name, object> = { registers: {}, documents: {}, configured: { ...client, resource: 'none' } }
  const config = configOf({
    upstreams: Object.fromEntries(
      names.map((name) => [
        name,
        // As long as a busy machine needs.
        { type: 'http', url: upstreams[name].url, connectMs: 60_000, auth: { type: 'user', ...authOf[name] } }
      ])
    ),
    auth: { issuers: [{ issuer: issuer.issuer, jwksUri: issuer.jwksUri }] },
    store: store.url,
    top: {
      publicUrl,
      admin: { ...adminSection, keys: adminSection.keys.filter(({ tenants }) => tenants === undefined) },
      logLevel: 'trace',
      hosts: ports.map((each) => `127.0.0.1:${each}`),
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: ['127.0.0.0/8'] },
      telemetry: { otlp: { endpoint: telemetry.endpoint }, metricsEverySeconds: 1, samplePercent: 10 }
    }
  })
  const folder = t.testdir({ 'gatehouse.json': JSON.stringify(config) })
  const made = ports.map((port) =>
    gatehouse(t, ['serve', '--config', join(folder, 'gatehouse.json'), '--port', String(port)], { cwd: folder })
  )
  const urls = await Promise.all(made.map(async ({ ready }) => `${await ready}/t/acme/mcp`))
  const tokenOf = (person: string, host: string): Promise<string> =>
    issuer.sign({ sub: person, client_id: host, exp: Math.floor(Date.now() / 1000) + 3600 })
  return { pages, servers, upstreams, made, store, telemetry, tokenOf, urls }
}

t.test(
  `${calls} mixed calls of two people at two hosts carry their own tokens, and none is anywhere else`,
  async (t) => {
    const { pages, servers, upstreams, made, store, telemetry, tokenOf, urls } = await setUp(t)
    for (const person of people) {
      for (const name of names) servers[name].person = `${person}-at-${name}`
      const { tab, page } = await signedIn(pages, await tokenOf(person, 'browser'))
      for (const name of names) {
        const own = await tab.go(`${pages}?upstream=${name}`, 'none')
        t.match((await connectAccount(tab, own)).html, `${name} is connected`, `${page.status}`)
      }
    }
    t.equal(servers.registers.registrations, 1)
    t.same(
      [...new Set(servers.documents.clientIds)],
      [`${pages}/client.json`],
      'where documents are taken, the gateway is known by its own'
    )

    const inbound: string[] = []
    const texts: string[] = []
    let done = 0
    let isRenewed = false
    const right = { calls: 0, lists: 0, pages: 0 }
    /** A third of the way through every token is refused, and has to be renewed. */
    function renew(): void {
      if (isRenewed || done < calls / 3) return
      isRenewed = true
      for (const { presented, withdrawn } of Object.values(upstreams))
        for (const each of presented) withdrawn.add(each.replace('Bearer ', ''))
    }
    await Promise.all(
      people.flatMap((person, p) =>
        hosts.map(async (host, h) => {
          const token = await tokenOf(person, host)
          inbound.push(token)
          const url = urls[(p + h) % urls.length] ?? ''
          const session = host === 'desk' ? await legacyClient(url, token) : undefined
          const sendOnce = async (method: string, params: Json) =>
            session === undefined
              ? await modernRequest(url, method, params, { token })
              : await session.request(method, params)
          /** What a busy machine refuses, nobody has executed. */
          const send = (method: string, params: Json) =>
            until('it is not refused', async () => {
              const answer = await sendOnce(method, params)
              return answer.status === 503 ? undefined : answer
            })
          let next = 0
          await Promise.all(
            Array.from({ length: atOnce }, async () => {
              while (next < calls / 4) {
                const n = next++
                renew()
                const name = names[n % 3] as Name
                if (n % 24 === 22) {
                  const { json, text } = await send('tools/list', {})
                  texts.push(text)
                  const listed = new Set((json.result.tools as { name: string }[]).map((tool) => tool.name))
                  right.lists += Number(names.every((each) => listed.has(`${each}__echo`)))
                } else if (n % 24 === 23) {
                  const headers = { authorization: `Bearer ${token}` }
                  const page = await until('it is not refused', async () => {
                    const answer = await fetch(pages, { headers })
                    return answer.status === 503 ? void (await answer.text()) : answer
                  })
                  const text = await page.text()
                  texts.push(text)
                  if (text.split('"state":"connected"').length === 4) right.pages++
                  else t.fail('a page that does not show three accounts', { status: page.status, text })
                } else {
                  const canary = `canary-${person}-${host}-${name}-${n}-`
                  const { text } = await send('tools/call', { name: `${name}__echo`, arguments: { text: canary } })
                  texts.push(text)
                  const found = text.match(/canary-[^\\"]*/g) ?? []
                  if (found.length > 0 && found.every((each) => each === canary)) right.calls++
                  else t.fail('an answer that is not its own', { canary, text })
                }
                done++
              }
            })
          )
        })
      )
    )
    const [asked, whole] = [right.calls + right.lists + right.pages, 4 * Math.ceil(calls / 4)]
    t.equal(asked, whole, `all are answered rightly: ${JSON.stringify(right)}`)
    t.ok(right.lists > 0 && right.pages > 0 && isRenewed)

    // Every call came once, with the token of its own person, of the server of its own upstream.
    const secrets = new Map<string, string>()
    for (const name of names)
      for (const { access, refresh } of servers[name].issued) {
        const owner = `${String(decodeJwt(access).sub)} ${decodeJwt(access).iss}`
        secrets.set(access, owner)
        if (refresh !== undefined) secrets.set(refresh, 'nobody but the authorization server')
      }
    for (const each of inbound) secrets.set(each, 'nobody but the gateway')
    t.ok(secrets.size >= 6 * 2 * 2 + 4, 'every account has been renewed')
    const inText = (text: string): string[] => [...secrets.keys()].filter((secret) => text.includes(secret))
    let executed = 0
    for (const name of names) {
      const { seen, presented } = upstreams[name]
      for (const each of seen) {
        const whose = inText(JSON.stringify(each)).map((secret) => secrets.get(secret))
        const { text = '' } = ((each.message?.['params'] as Json | undefined)?.['arguments'] ?? {}) as { text?: string }
        const [, person] = /^canary-([a-z]+)-/.exec(text) ?? []
        const isOwn =
          whose.length === 1 &&
          new RegExp(`^${person ?? '[a-z]+'}-at-${name} ${servers[name].url}$`).test(whose[0] ?? '')
        if (!isOwn) t.fail('a foreign token at an upstream', { name, whose, text })
        executed += Number(isCall('echo')(each))
      }
      t.equal(
        presented.filter(
          (each) => secrets.get(each.replace('Bearer ', ''))?.endsWith(servers[name].url) !== true && each !== ''
        ).length,
        0
      )
      const asked = servers[name].tokenRequests
      t.ok(asked.length >= 4, 'codes and renewals')
      const resource = name === 'configured' ? null : upstreams[name].url
      t.same(
        asked.filter((each) => each.get('resource') !== resource).map((each) => Object.fromEntries(each)),
        [],
        'each names what its tokens are for'
      )
      const own = new Set(servers[name].issued.map(({ refresh }) => refresh))
      t.ok(asked.every((each) => !each.has('refresh_token') || own.has(each.get('refresh_token') ?? '')))
    }
    t.equal(executed, right.calls, 'each call is executed once')

    // And nowhere else: not in answers, in the log, in traces and metrics, or in the store.
    t.same(inText(texts.join('\n')), [])
    for (const { stderr } of made) t.same(inText(stderr.join('\n')), [])
    for (const path of ['/v1/traces', '/v1/metrics', '/v1/logs'])
      await until(path, () => telemetry.seen.some((each) => each.path === path))
    t.same(inText(telemetry.raw.join('\n')), [])
    for (const each of made) {
      const { adminUrl } = await each.logged('the admin API listens', (line) => line['adminUrl'] !== undefined)
      const read = async (path: string, key: string): Promise<string> =>
        await (await fetch(`${String(adminUrl)}${path}`, { headers: { authorization: `Bearer ${key}` } })).text()
      const metrics = await read('/metrics', adminKeys.metrics)
      t.match(metrics, /gatehouse_\w*calls?\w*\{[^}]*upstream="registers"/, 'they count these calls')
      t.same(inText(metrics), [])
      const connections = await read('/v1/tenants/acme/connections', adminKeys.platform)
      t.match(connections, /"registers"/)
      t.same(inText(connections), [])
    }
    const connection = new Redis(store.url)
    t.teardown(() => connection.disconnect())
    const keys = await connection.keys('*')
    const dumps = await Promise.all(keys.map((each) => connection.dumpBuffer(each)))
    t.ok(dumps.length > 6)
    t.same(inText(Buffer.concat(dumps.map((each) => each ?? Buffer.alloc(0))).toString('latin1')), [])
  }
)
