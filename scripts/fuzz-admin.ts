// `npm run fuzz:admin`: schemathesis (https://schemathesis.readthedocs.io) fuzzes the OpenAPI document of a real admin
// listener: no request that the document describes, and none that it does not, may be answered by a fault of the gateway,
// and answers are as the document says. Most paths name what there is: otherwise nearly all would be unknown. Installs it into .interop/, says what is missing, and ends with the report.
// Arguments go to schemathesis: `--seed 7`, `--max-examples 100`.

import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gateway } from '../test/kit/gateway.ts'
import { startUpstream } from '../test/kit/upstream.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, '.interop', 'schemathesis')
const version = '4.32.5'
/** Each may send twenty requests a second. */
const keyCount = 100

/** Of the configuration, where nothing can be changed, and made by the API. */
const tenants = ['acme', 'made']
/** What both have. Chance still gives some of the paths names of its own. */
const known = { tenant: tenants, upstream: ['up'], endpoint: ['default'], key: ['ci'], limit: ['all'], tool: ['echo'] }
const knownShare = 0.8

/** Changes of what there is are taken with the version that it has, or with any. */
const versions = ['*']

/** In TOML, which takes these values as JSON has them. */
const settings = [
  `[dictionaries.version]\nvalues = ${JSON.stringify(versions)}`,
  ...Object.entries(known).map(([name, values]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(values)}`),
  '[parameters]',
  `"header.If-Match" = { dictionary = "version", probability = ${knownShare} }`,
  ...Object.keys(known).map((name) => `"path.${name}" = { dictionary = "${name}", probability = ${knownShare} }`)
].join('\n')

const checks = ['not_a_server_error', 'content_type_conformance', 'response_schema_conformance']

async function run(command: string, args: readonly string[]): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', cwd: join(root, '.interop') })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

const ends: Array<() => unknown> = []
const teardown = { teardown: (end: () => unknown) => void ends.unshift(end) }

async function main(): Promise<number> {
  const python = join(folder, 'bin', 'python')
  await mkdir(join(root, '.interop'), { recursive: true })
  if (!existsSync(python) && (await run('python3', ['-m', 'venv', folder])) !== 0) {
    process.stderr.write('There is no python3 of 3.10 or later with venv, which schemathesis needs.\n')
    return 1
  }
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${version}`]
  if ((await run(python, install)) !== 0) return 1
  const keys = Array.from({ length: keyCount }, (_, at) => `gha_${hash('sha256', `fuzz ${at}`, 'base64url')}`)
  const upstream = await startUpstream()
  teardown.teardown(() => upstream.close())
  await writeFile(join(root, '.interop', 'schemathesis.toml'), settings)
  const upstreams = { up: { type: 'http', url: upstream.url } }
  const auth = { keys: [{ name: 'ci', key: 'gh_key_of_the_fuzzed_tenant_0123456789' }] }
  const limits = { all: { perDay: 1_000_000 } }
  const endpoints = { default: { upstreams: ['up'] } }
  const made = await gateway(teardown, {
    upstreams,
    auth,
    endpoints,
    callLimits: limits,
    top: {
      audit: {},
      admin: {
        listen: { port: 0 },
        keys: keys.map((key, at) => ({ name: `fuzz-${at}`, role: 'platform-admin', sha256: hash('sha256', key) }))
      }
    }
  })
  const tenant = JSON.stringify({ upstreams, auth: {}, endpoints, limits })
  const proxy = await startProxy(made.adminUrl, keys, async () => {
    const headers = { Authorization: `Bearer ${keys[0]}`, 'Content-Type': 'application/json' }
    const own = `${made.adminUrl}/v1/tenants/made`
    await fetch(`${own}/kills/tenant`, { method: 'DELETE', headers })
    await fetch(own, { method: 'PUT', headers: { ...headers, 'If-Match': '*' }, body: tenant })
    await fetch(own, { method: 'PUT', headers, body: tenant })
    await fetch(`${own}/keys`, { method: 'POST', headers, body: JSON.stringify({ name: 'ci' }) })
  })
  const code = await run(join(folder, 'bin', 'schemathesis'), [
    'run',
    `${proxy}/openapi.json`,
    '--checks',
    checks.join(','),
    // Its phase "coverage" fails by faults of its own (SystemError of Python's ast).
    '--phases',
    'fuzzing,stateful',
    '--workers',
    '2',
    '--no-color',
    ...process.argv.slice(2)
  ])
  const faults = made.log.filter(({ level }) => Number(level) >= 50)
  for (const each of faults.slice(0, 10)) process.stdout.write(`${JSON.stringify(each)}\n`)
  process.stdout.write(`${faults.length} errors in the log of the gateway, ${lost} requests without an answer\n`)
  return faults.length > 0 || lost > 0 ? 1 : code
}

const tooLarge = JSON.stringify({
  type: 'urn:gatehouse:problem:too_large',
  title: 'The body is too large.',
  status: 413,
  detail: 'The connection was closed while it was sent.',
  instance: '/',
  remedy: 'Send a smaller one.'
})

/** What the admin API takes; of a longer body no more may be read than its length. */
const maxBody = 262_144
/** Requests that were not answered at all. */
let lost = 0

/** Requests between two times that the tenant is made, which some of them change, stop or delete. */
const madeEvery = 20

/**
 * Gives each request the next of the keys, because one alone is soon slowed down.
 * @param makeTenant called before the first request, and after some
 */
async function startProxy(to: string, keys: readonly string[], makeTenant: () => Promise<void>): Promise<string> {
  let turn = 0
  async function pass(incoming: IncomingMessage, reply: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    if (turn % madeEvery === 0) await makeTenant()
    const { host: _host, authorization: _authorization, connection: _connection, ...headers } = incoming.headers
    const outgoing = request(
      `${to}${incoming.url ?? ''}`,
      {
        method: incoming.method,
        agent: false,
        headers: { ...headers, Authorization: `Bearer ${keys[turn++ % keys.length]}` }
      },
      (answer) => {
        reply.writeHead(answer.statusCode ?? 502, answer.headers)
        // A stream of events does not end by itself.
        if (/event-stream/.test(answer.headers['content-type'] ?? '')) answer.once('data', () => outgoing.destroy())
        answer.on('error', () => reply.end())
        answer.pipe(reply)
      }
    )
    outgoing.on('error', () => {
      if (reply.headersSent) return reply.end()
      // Whoever is still writing when the answer comes may find the connection closed before it is read.
      if (body.length <= maxBody) lost++
      return reply.writeHead(413, { 'Content-Type': 'application/problem+json' }).end(tooLarge)
    })
    outgoing.end(body)
  }
  // What is too long is the gateway's to refuse.
  const server = createServer({ maxHeaderSize: 1_048_576 }, (incoming, reply) => void pass(incoming, reply))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  teardown.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

try {
  process.exitCode = await main()
} finally {
  for (const end of ends) await end()
}
