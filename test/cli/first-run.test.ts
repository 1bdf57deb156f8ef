// The first five minutes of somebody with an mcp.json: eleven servers, of which four are broken. The first attempt
// starts, and its output says what to do about each of the four.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gatehouse } from '../e2e/kit/process.ts'
import { identityProvider } from '../kit/identity-provider.ts'
import { issuer } from '../kit/issuer.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { cli } from './kit.ts'

const script = join(import.meta.dirname, '../kit/stdio-server.ts')
const tools = (name: string) => JSON.stringify({ tools: [{ name, inputSchema: { type: 'object' } }] })
const stdio = (name: string) => ({ command: process.execPath, args: [script, tools(name)] })

t.test('twelve servers of which five are broken: it starts, and says what to do about each', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const folder = t.testdir()
  const file = join(folder, 'mcp.json')
  const servers = {
    one: stdio('a'),
    two: stdio('b'),
    three: stdio('c'),
    'Server Four': stdio('d'),
    five: stdio('e'),
    six: { type: 'http', url: upstream.url },
    seven: { url: upstream.url, timeout: 5 },
    github: { ...stdio('f'), env: { GITHUB_TOKEN: '${env:GITHUB_TOKEN}' } },
    typo: { command: 'npxx', args: ['-y', 'a-server'] },
    dies: { command: process.execPath, args: [script, '{"die":3}'] },
    lost: { command: process.execPath, args: [join(folder, 'not-there.js')] },
    away: { url: 'http://127.0.0.1:1/mcp' }
  }
  writeFileSync(file, `// mine\n${JSON.stringify({ mcpServers: servers }, null, 2)}`)
  const env = { GATEHOUSE_LOG_FORMAT: 'text' }
  const running = gatehouse(t, ['serve', '--mcp-json', file, '--port', '0', '--data', join(folder, 'data')], { env })
  const url = await running.ready
  const said = (): string => running.stderr.join('\n')
  const key = join(folder, 'data', 'api-key')
  await until('seven servers are there', async () => {
    const { out } = await cli(['list', `${url}/t/demo/mcp`, '--key-file', key])
    return ['one__a', 'two__b', 'three__c', 'Server-Four__d', 'five__e', 'six__echo', 'seven__echo'].every((name) =>
      out.includes(name)
    )
  })
  // Each in its own time: how long a process takes to start, or to fail, is not known.
  const told = (line: RegExp): Promise<unknown> => until(String(line), () => line.test(said()))
  await told(
    /mcp\.json line \d+, server github: GITHUB_TOKEN is not set; left out until it is set and the gateway is started again/
  )
  const [, line = ''] = /line (\d+), server github/.exec(said()) ?? []
  const rows = `// mine\n${JSON.stringify({ mcpServers: servers }, null, 2)}`.split('\n')
  t.match(rows[Number(line) - 1], 'GITHUB_TOKEN', 'that line it is')
  await told(/upstream=typo .*the command npxx was not found: install it, or correct the command or its PATH/)
  await told(/upstream=dies .*stderr="cannot start: bad configuration".*exit code 3.*tried again in \d+ s/)
  await told(/upstream=dies .*run its command by hand with the variables of its env\. It is tried again/)
  await told(/upstream=lost .*exit code 1.* is missing: correct the path in its args, or install its packages\./)
  await told(/upstream=away .*127\.0\.0\.1:1 \(ECONNREFUSED\): check that it runs and that its url is right/)
  await told(/"Server Four" is now upstream "Server-Four"/)
  for (const name of ['one', 'Server-Four', 'six'])
    await told(new RegExp(`\\d ${name} is ready: \\d+ tools?, [\\d.]+ s \\(demo\\)`))
  t.equal(said().match(/stderr="cannot start/g)?.length, 1, 'then it is quiet')
  // Not the end of its stack.
  await told(/upstream=lost .*stderr="Error: Cannot find module '.*not-there\.js'"/)
  t.notMatch(said(), /upstream stderr .*upstream=(?:dies|lost)/)
  const call = await cli(['call', `${url}/t/demo/mcp`, 'six__echo', '{}', '--key-file', key])
  t.equal(call.code, 0)
  t.same(await running.stop(), { code: 0, signal: null })
})

t.test('check says the same of the file before anything is started, and --connect tries the rest', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'mcp.json')
  const servers = {
    good: stdio('a'),
    off: { ...stdio('c'), disabled: true },
    home: { ...stdio('d'), cwd: '~/work' },
    broken: { ...stdio('b'), env: { A: '${TOKEN_OF_A}' } },
    url: { url: 'htp:/x' }
  }
  writeFileSync(file, JSON.stringify({ mcpServers: servers }))
  const { code, out } = await cli(['check', file])
  t.equal(code, 1)
  t.match(out, /^this is an mcp\.json: 1 server can be used as it stands, 1 with notes, 1 disabled, 2 problems\n/)
  t.match(out, /^  note: line 1: Server "home": nothing expands "~" here/m)
  t.match(out, new RegExp(`${file} line 1, server broken: TOKEN_OF_A is not set; left out until it is`))
  t.match(out, /server url: url is not an absolute URL; left out\. Write it like/)
  t.match(out, /gatehouse serve --mcp-json .*gatehouse import/)
  const inCi = await cli(['check', file, '--no-env'])
  t.equal(inCi.code, 1, 'what is wrong beside the variables is still a problem')
  t.match(inCi.out, /1 with notes, 1 disabled, 1 problem, as far as it can be said without TOKEN_OF_A\n/)
  t.notMatch(inCi.out, /is not set/)
  writeFileSync(join(folder, 'ci.json'), JSON.stringify({ mcpServers: { broken: servers.broken } }))
  t.equal((await cli(['check', join(folder, 'ci.json'), '--no-env'])).code, 0)
  t.equal((await cli(['check', join(folder, 'ci.json')])).code, 1, 'the control')
  const tried = await cli(['check', file, '--connect'], { TOKEN_OF_A: 'x' })
  for (const name of ['good', 'broken']) t.match(tried.err, new RegExp(`^ {2}ok {4}${name}: 1 tool, [\\d.]+ s$`, 'm'))
  t.match(tried.out, /\/t\/demo\/mcp: 2 tools \(about \d+ tokens\)/)
  const asData = await cli(['check', file, '--json'])
  t.equal(asData.code, 1)
  t.match(JSON.parse(asData.out), {
    file,
    kind: 'mcp.json',
    problems: [{ message: /TOKEN_OF_A is not set/ }, { message: /url is not an absolute URL/ }],
    notes: [/^line 1: Server "home"/],
    unset: [],
    upstreams: 2,
    endpoints: ['/t/demo/mcp']
  })
  t.match(JSON.parse((await cli(['check', file, '--no-env', '--json'])).out), { unset: ['TOKEN_OF_A'] })
})

t.test('check --connect finds where tokens and people come from, and says why it does not, once', async (t) => {
  const front = 'https://mcp.example'
  const [known, provider] = await Promise.all([issuer(t), identityProvider(t, `${front}/login/b/callback`)])
  const config = (issuers: string, at: string): string =>
    `publicUrl: ${front}\nvault: { keys: [{ id: "k1", key: "\${VAULT}" }] }\ntenants:\n` +
    `  a: { auth: { issuers: [${issuers}] }, upstreams: {} }\n` +
    `  b: { auth: { login: { provider: { issuer: "${at}", clientId: x, clientSecret: "\${SECRET}" } } }, upstreams: {} }\n`
  const down = 'http://127.0.0.1:1'
  const folder = t.testdir({
    'good.yaml': config(`{ issuer: "${known.url}" }`, provider.url),
    'bad.yaml': config(`{ issuer: "${known.url}" }, { issuer: "${down}" }`, down)
  })
  const env = { VAULT: Buffer.alloc(32).toString('base64'), SECRET: 'the-secret-of-the-client' }
  const good = await cli(['check', join(folder, 'good.yaml'), '--connect'], env)
  t.equal(good.code, 0, good.out)
  t.match(good.out, '/t/a/mcp: 0 tools, 0 prompts,')
  t.match(good.err, `  ok    issuer ${known.url}: its keys are at ${known.jwksUri}\n`)
  t.match(good.err, `  ok    provider ${provider.url}: people sign in at ${provider.url}/auth\n`)
  const bad = await cli(['check', join(folder, 'bad.yaml'), '--connect'], env)
  t.equal(bad.code, 1)
  const asData = await cli(['check', join(folder, 'bad.yaml'), '--connect', '--json'], env)
  t.equal(asData.code, 1)
  t.match(JSON.parse(asData.out), {
    kind: 'configuration',
    problems: [],
    tried: {
      issuers: [
        { kind: 'issuer', issuer: known.url, isWell: true },
        {
          kind: 'issuer',
          issuer: down,
          isWell: false,
          said: /^no usable metadata of issuer .*: connect ECONNREFUSED [\d.:]+$/
        },
        { kind: 'provider', issuer: down, isWell: false }
      ]
    }
  })
  t.match(bad.err, `  ok    issuer ${known.url}: `, 'the others are tried all the same')
  for (const what of ['issuer', 'provider'])
    t.match(
      bad.err,
      `  FAILS ${what} ${down}: no usable metadata of issuer ${down}: connect ECONNREFUSED 127.0.0.1:1\n`
    )
})

t.test('--no-env is content with variables that CI does not have, and with nothing else', async (t) => {
  const text = (more: string): string =>
    `tenants:\n  a:\n    auth: { keys: [{ name: x, key: "\${KEY_OF_X}" }] }\n    upstreams: { u: { url: "\${URL_OF_U}"${more} } }\n`
  const folder = t.testdir({ 'good.yaml': text(''), 'bad.yaml': text(', hedders: {}') })
  const check = (name: string, ...rest: string[]) => cli(['check', join(folder, name), ...rest])
  t.match(await check('good.yaml', '--no-env'), { code: 0, out: /is valid, as far as .* without KEY_OF_X, URL_OF_U\n/ })
  t.match(await check('good.yaml'), { code: 1, out: /needs the environment variable KEY_OF_X/ })
  const bad = await check('bad.yaml', '--no-env')
  t.match(bad, {
    code: 1,
    out: /bad\.yaml line 4, tenants\.a\.upstreams\.u\.hedders: is not a known key\. Did you mean "headers"\?\n1 problem in/
  })
  t.notMatch(bad.out, 'KEY_OF_X')
  const asData = await check('bad.yaml', '--no-env', '--json')
  t.equal(asData.code, 1)
  t.match(JSON.parse(asData.out), {
    file: /bad\.yaml$/,
    problems: [{ path: 'tenants.a.upstreams.u.hedders', line: 4, message: 'is not a known key' }]
  })
  t.match(JSON.parse((await check('good.yaml', '--no-env', '--json')).out), { unset: ['KEY_OF_X', 'URL_OF_U'] })
  const ofFile = (path: string): string => text('').replace('KEY_OF_X', `file:${path}`)
  writeFileSync(join(folder, 'file.yaml'), ofFile('/run/secrets/x-is-not-here'))
  const withoutFile = await check('file.yaml', '--no-env')
  t.match(withoutFile, {
    code: 0,
    out: /is valid, as far as .* without URL_OF_U, file:\/run\/secrets\/x-is-not-here\n/
  })
  t.match(await check('file.yaml'), { code: 1, out: /refers to a file that cannot be read: "\/run.* no such file/ })
  writeFileSync(join(folder, 'folder.yaml'), ofFile('.'))
  t.match(await check('folder.yaml', '--no-env'), { code: 1, out: /"\." \(not an ordinary file\)/ }, 'it is there')
  // A fault of the same text is not hidden by what the text lacks.
  for (const [name, key, fault] of [
    ['caller', '${principal.subject}${file:/run/x-is-not-here}', /refers to who calls, which only headers/],
    ['member', '${principal.x}${KEY_OF_X}', /refers to what no caller has/],
    ['both', '${KEY_OF_X}${file:.}', /"\." \(not an ordinary file\)/],
    ['form', '${KEY_OF_X}${', /has a \$\{ that begins no reference/]
  ] as const) {
    writeFileSync(join(folder, `${name}.yaml`), text('').replace('${KEY_OF_X}', key))
    t.match(await check(`${name}.yaml`, '--no-env'), { code: 1, out: fault }, name)
  }
})

t.test('the files of Zed, Codex, Goose and Windsurf are read', async (t) => {
  const folder = t.testdir({
    'settings.json':
      '{\n  // zed\n  "theme": "One",\n  "context_servers": {\n    "old": { "command": { "path": "uvx", "args": ["a"], "env": null } },\n    "far": { "source": "custom", "url": "https://far.example/mcp", "headers": { "X": "y" } }\n  }\n}',
    'config.toml':
      'model = "x"\n[mcp_servers.local]\ncommand = "npx"\nargs = ["-y", "b"]\nenv_vars = ["HOME_OF_B"]\n[mcp_servers.far]\nurl = "https://far.example/mcp"\nbearer_token_env_var = "FAR_TOKEN"\nhttp_headers = { "X-A" = "b" }\n',
    'config.yaml':
      'GOOSE_MODEL: x\nextensions:\n  developer: { type: builtin, enabled: true }\n  files: { type: stdio, cmd: npx, args: [c], envs: { A: b }, env_keys: [C_TOKEN], enabled: false }\n  far: { type: streamable_http, uri: https://far.example/mcp, envs: { B: b }, env_keys: [F_TOKEN], headers: { Authorization: "Bearer $F_TOKEN", X: "a$B-${ F_TOKEN }$OTHER" } }\n',
    'mcp_config.json': '{ "mcpServers": { "far": { "serverUrl": "https://far.example/mcp" } } }'
  })
  const imported = async (name: string) => await cli(['import', join(folder, name)])
  const zed = await imported('settings.json')
  t.match(
    zed.out,
    /old:\n +command: uvx\n +args:\n +- a\n[^]*far:\n +url: https:\/\/far\.example\/mcp\n +headers:\n +X: y/
  )
  t.match(zed.err, /not about servers: "theme"/)
  const codex = await imported('config.toml')
  t.match(codex.out, /local:\n +command: npx[^]*inheritEnv:\n +- HOME_OF_B[^]*Authorization: Bearer \$\{FAR_TOKEN\}/)
  t.match(codex.out, /X-A: b/)
  const goose = await imported('config.yaml')
  t.match(
    goose.out,
    /files:\n +command: npx[^]*C_TOKEN: \$\{C_TOKEN\}[^]*disabled: true[^]*far:\n +(?:type: http\n +)?url: https:/
  )
  t.match(goose.out, /Authorization: Bearer \$\{F_TOKEN\}\n +X: ab-\$\{F_TOKEN\}\$OTHER/)
  t.match(goose.err, /built into Goose: developer/)
  t.notMatch(goose.err, 'secret in clear')
  // What the servers take from the environment is named, whatever the file.
  t.match(goose.err, /Set in the environment, .*: C_TOKEN, F_TOKEN\.\n/)
  t.match(codex.err, /Set in the environment, .*: FAR_TOKEN, HOME_OF_B\.\n/)
  t.notMatch(zed.err, 'Set in the environment')
  t.match((await imported('mcp_config.json')).out, 'url: https://far.example/mcp')
})

t.test('import warns of what does not mean here what it meant there, and repeats no secret', async (t) => {
  const file = join(t.testdir(), 'mcp.json')
  const secret = 'ghp_x7Kq93LmT0aZ4bW8cR2d'
  writeFileSync(
    file,
    JSON.stringify({
      mcpServers: {
        a: { command: 'npx', args: ['-y', 'x', '~/notes'], env: { GITHUB_TOKEN: secret, LEVEL: 'debug' } },
        b: { command: 'npx -y some-server' },
        c: { command: 'node', args: ['x.js', '&&', 'echo', '$(pwd)'] },
        d: { url: 'https://d.example/mcp', headers: { 'X-Api-Key': secret } },
        pat: { command: 'x', env: { GITHUB_PAT: secret } },
        sql: { command: 'x', env: { DATABASE_URL: 'postgres://app:sesame-open@db.example:5432/app' } },
        remote: {
          command: 'npx',
          args: ['-y', 'mcp-remote', 'https://e.example/mcp', '--header', 'Authorization: Bearer open-sesame']
        },
        flag: { command: 'x', args: ['--api-key', 'open-sesame-again', '--token=sesame-open-again'] },
        query: { url: 'https://f.example/mcp?api_key=sesame-of-query' },
        user: { url: 'https://sesame-of-user@g.example/mcp' },
        fine: {
          command: 'sh',
          args: ['-c', 'cd /x && node y.js', '--header', 'Authorization: Bearer ${TOKEN}', '--token', 'YOUR_TOKEN'],
          env: { TOKEN: '${TOKEN}', KEY_FILE: '/run/secrets/of-the-server', API_KEY: 'your-api-key' }
        },
        clean: { url: 'https://h.example/mcp?region=eu-central-1', headers: { Accept: 'application/json' } }
      }
    })
  )
  const { err } = await cli(['import', file])
  t.match(err, /"a": env\.GITHUB_TOKEN is a secret in clear, or holds one\. .*\$\{GITHUB_TOKEN\}/)
  t.match(err, /"a": nothing expands "~" here\. Write \$\{HOME\}/)
  t.match(err, /"b": its command holds arguments\. It is started without a shell/)
  t.match(err, /"c": its args are for a shell/)
  t.match(err, /"d": headers\.X-Api-Key is a secret in clear/)
  for (const [server, place] of [
    ['pat', 'env.GITHUB_PAT'],
    ['sql', 'env.DATABASE_URL'],
    ['remote', 'args[4]'],
    ['flag', 'args[1]'],
    ['flag', 'args[2]'],
    ['query', 'url'],
    ['user', 'url']
  ])
    t.ok(err.includes(`"${server}": ${place} is a secret in clear, or holds one.`), `${server}, ${place}`)
  t.match(err, /args\[4\] .* write \$\{AUTHORIZATION\}/)
  for (const each of [secret, 'sesame']) t.notMatch(err, each)
  for (const each of ['"fine"', '"clean"']) t.notMatch(err, each)
  t.match(err, /Set in the environment, before the start, what the servers take from it: TOKEN\.\n/)
  t.notMatch(err, 'LEVEL')
})

t.test('each file is called what it is, also where it has no servers, and lines are those of the server', async (t) => {
  const folder = t.testdir({
    'config.yaml': 'extensions:\n  files: { type: stdio, cmd: npx, args: [c] }\n',
    'config.toml': '[mcp_servers.github]\ncommand = "npx"\n[mcp_servers.git]\ncommand = "${UNSET_COMMAND}"\n',
    'settings.json': '{ "context_servers": { "a": { "command": "npx" } } }',
    'mcp.json': '{ "mcpServers": { "a": { "command": "npx" } } }',
    'none.json': '{ "mcpServers": {} }',
    'gatehouse.yaml': 'store: "memory:"\ntenants: {}\n',
    'gatehouse.json': '{ "store": "memory:", "tenants": {} }',
    'empty.toml': 'model = "x"\n'
  })
  const checked = async (name: string) => await cli(['check', join(folder, name)])
  t.match(await checked('config.yaml'), { code: 0, out: /this is the config\.yaml of Goose: 1 server can be used/ })
  const codex = await checked('config.toml')
  t.match(codex, { code: 1, out: /this is the config\.toml of Codex: 1 server can be used .*1 problem/ })
  t.match(codex.out, /config\.toml line 3, server git: UNSET_COMMAND is not set/)
  t.match((await checked('settings.json')).out, /this is the settings\.json of Zed/)
  t.match((await checked('mcp.json')).out, /this is an mcp\.json/)
  const none = /none\.json has no server that can be used: nothing is offered\. Add one to it, or give another file\./
  t.match(await checked('none.json'), { code: 0, out: none })
  const at = ['--port', '0', '--data', join(folder, 'data')]
  const running = gatehouse(t, ['serve', '--mcp-json', join(folder, 'none.json'), ...at])
  await running.ready
  t.match(running.stderr.join('\n'), none)
  t.notMatch((await checked('mcp.json')).out, 'has no server')
  // A configuration is told from the file of a host, and a fault of a key that no file has is told of its variable.
  for (const name of ['gatehouse.yaml', 'gatehouse.json']) {
    const own = await cli(['import', join(folder, name)])
    t.match(own, {
      code: 1,
      err: /is a configuration, and no file of a host\. Serve it with: gatehouse serve --config/
    })
  }
  const guessed = gatehouse(t, ['serve', '--mcp-json', join(folder, 'mcp.json'), ...at], {
    env: { GATEHOUSE_KEY: '0123456789abcdef0123' }
  })
  t.match(await guessed.ended, { code: 1 })
  t.match(
    guessed.stderr.join('\n'),
    /mcp\.json: the value of GATEHOUSE_KEY is a placeholder or easily guessed\. Make one/
  )
  t.notMatch(guessed.stderr.join('\n'), 'tenants.demo')
  t.match(await checked('empty.toml'), { code: 1, out: /has no table mcp_servers\. Give the config\.toml of Codex/ })
})

t.test('of Claude Code the servers of this folder are read, and those of others are named', async (t) => {
  const server = (command: string) => ({ type: 'stdio', command, args: [], env: {} })
  const content = {
    numStartups: 7,
    mcpServers: { everywhere: server('npx'), both: server('of-all') },
    projects: {
      [process.cwd()]: { allowedTools: [], mcpServers: { here: server('uvx'), both: server('of-folder') } },
      '/elsewhere': { mcpServers: { there: server('npx'), too: server('npx') } },
      '/nothing': { mcpServers: {} }
    }
  }
  const folder = t.testdir({ '.claude.json': JSON.stringify(content, null, 2) })
  const { code, out, err } = await cli(['import', join(folder, '.claude.json')])
  t.equal(code, 0)
  t.match(out, /everywhere:\n +type: stdio\n +command: npx[^]*both:[^]*command: of-folder[^]*here:[^]*command: uvx/)
  t.notMatch(out, /there|of-all/)
  t.match(err, /of other folders: servers of \/elsewhere \(2\)\./)
  t.notMatch(err, /nothing|numStartups/)
  const checked = await cli(['check', join(folder, '.claude.json')])
  t.match(checked, { code: 0, out: /this is the \.claude\.json of Claude Code: 3 servers can be used/ })
})

t.test(
  'check --connect tries keys at a jwksUri, names upstreams of no endpoint, and says what a server answers',
  async (t) => {
    const known = await issuer(t)
    const refusing = await startUpstream()
    const failing = await startUpstream()
    const error = { code: -32050, message: 'the licence has ended' }
    for (const [server, method] of [
      [refusing, 'initialize'],
      [failing, 'tools/list']
    ] as const) {
      t.teardown(() => server.close())
      server.override(
        ({ message }) =>
          message?.['method'] === method || (method !== 'initialize' && String(message?.['method']).endsWith('list')),
        (response, { message }) => {
          response.writeHead(200, { 'Content-Type': 'application/json' })
          response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error }))
        },
        1_000
      )
    }
    const tenant = {
      auth: {
        issuers: [
          { issuer: known.url, jwksUri: known.jwksUri },
          { issuer: 'https://idp.example.com', jwksUri: `${known.url}/nothing-here` }
        ]
      },
      upstreams: {
        refusing: { url: refusing.url },
        failing: { url: failing.url },
        forgotten: { url: 'http://127.0.0.1:1/mcp' }
      },
      endpoints: { default: { upstreams: ['refusing', 'failing'] } }
    }
    const folder = t.testdir({ 'gatehouse.json': JSON.stringify({ tenants: { acme: tenant } }) })
    const file = join(folder, 'gatehouse.json')
    const { code, out, err } = await cli(['check', file, '--connect'])
    t.equal(code, 1)
    t.match(err, `  ok    issuer ${known.url}: its keys are at ${known.jwksUri}\n`)
    t.match(
      err,
      `  FAILS issuer https://idp.example.com: its keys cannot be read: ${known.url}/nothing-here answers with`
    )
    t.match(out, /! acme\/forgotten is in no endpoint: nobody can call it/)
    t.match(out, /! refusing is missing: .*the licence has ended/)
    t.match(out, /! failing is missing: .*the licence has ended \(-32050\)/)
    const { tried } = JSON.parse((await cli(['check', file, '--connect', '--json'])).out) as { tried: object }
    t.match(tried, { unused: ['acme/forgotten'] })
  }
)

t.test(
  'a file answers what is in it by name, without secrets; and whoever has no admin API is told what answers',
  async (t) => {
    const secret = 'ghp_x7Kq93LmT0aZ4bW8cR2d'
    const tenant = {
      auth: { keys: [{ name: 'ci', key: secret }] },
      upstreams: { files: { command: 'npx', args: ['-y', 'files'], env: { TOKEN: secret, LEVEL: '${LEVEL}' } } }
    }
    const folder = t.testdir({ 'gatehouse.json': JSON.stringify({ tenants: { acme: tenant } }) })
    const file = join(folder, 'gatehouse.json')
    const get = (...words: string[]) => cli([...words, '--config', file], { LEVEL: 'debug' })
    const whole = await get('tenant', 'get', 'acme')
    t.match(whole, {
      code: 0,
      out: /^id: acme\nconfiguration:\n[^]*command: npx[^]*TOKEN:\n +secret: true[^]*LEVEL: \$\{LEVEL\}/
    })
    const upstream = await get('upstream', 'get', 'acme', 'files', '--json')
    t.match(JSON.parse(upstream.out), { name: 'files', type: 'stdio', configuration: { args: ['-y', 'files'] } })
    t.match(await get('endpoint', 'get', 'acme', 'default'), { code: 0, out: /path: \/t\/acme\/mcp/ })
    for (const { out } of [whole, upstream]) t.notMatch(out, secret)
    t.match(await get('upstream', 'get', 'acme', 'fils'), {
      code: 2,
      err: /has no upstream "fils"\. Did you mean "files"/
    })
    t.match(await get('tenant', 'get', 'nobody'), {
      code: 2,
      err: /gatehouse\.json has no tenant "nobody"\. It has: acme/
    })
    for (const command of ['status', 'tail']) {
      const nobody = { GATEHOUSE_ADMIN_URL: 'http://127.0.0.1:1', GATEHOUSE_ADMIN_KEY: 'gha_x' }
      t.match((await cli([command], nobody)).err, /serve --mcp-json have none\. Without it "gatehouse tail FILE" reads/)
      t.match((await cli([command])).err, /Give an admin key.*"gatehouse tail FILE" reads the log/)
    }
    t.match(await cli(['check']), { code: 2, err: /check needs a FILE/ })
  }
)
