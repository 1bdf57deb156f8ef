// `connect`: what is printed for each host is what `import` reads back, and --write changes a host's file and nothing
// else in it.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse as parseToml, stringify as toml } from 'smol-toml'
import t from 'tap'
import { parse as parseYaml } from 'yaml'
import { herePlace, hosts } from '../../src/hosts/hosts.ts'
import { cli } from './kit.ts'

const url = 'https://mcp.example.com/t/acme/mcp'
const key = 'gh_key_of_ada_0123456789'
const connect = (home: string, host: string, ...rest: string[]) =>
  cli(['connect', url, '--host', host, ...rest], { HOME: home, GATEHOUSE_KEY: key })
interface Imported {
  readonly tenants: { readonly demo: { readonly upstreams: Readonly<Record<string, unknown>> } }
}
const withoutKey = (home: string, host: string) => cli(['connect', url, '--host', host], { HOME: home })

t.test('every host is told the URL, and the key in its own way', async (t) => {
  const home = t.testdir()
  for (const host of Object.keys(hosts)) {
    const { code, out, err } = await connect(home, host)
    t.equal(code, 0, host)
    t.match(out, url, host)
    if (host === 'chatgpt') t.match(out, /knows no API keys[^]*auth\.issuers/)
    else if (host === 'codex') t.match(out + err, /bearer_token_env_var = "GATEHOUSE_KEY"[^]*export GATEHOUSE_KEY/)
    else t.match(out, key, host)
    const open = await withoutKey(home, host)
    t.notMatch(open.out + open.err, /Bearer|GATEHOUSE_KEY/, `${host} without a key`)
  }
})

t.test('--json has the same as data, and of --write what was done', async (t) => {
  const home = t.testdir()
  const asData = async (host: string, ...rest: string[]) => {
    const { code, out } = await connect(home, host, '--json', ...rest)
    t.equal(code, 0, host)
    return JSON.parse(out) as { file?: { path: string; snippet: string }; command?: string; link?: string }
  }
  for (const host of Object.keys(hosts)) {
    const { file, command, link, ...rest } = await asData(host)
    t.match(rest, { host, title: hosts[host]?.title, name: 'gatehouse', url, notes: Array, doubts: [] })
    t.notOk('done' in rest)
    const { out } = await connect(home, host)
    for (const part of [file?.path, command, link]) if (part !== undefined) t.ok(out.includes(part), `${host}: ${part}`)
    for (const line of (file?.snippet ?? '').trim().split('\n')) t.ok(out.includes(line), `${host}: ${line}`)
  }
  const { file, ...rest } = await asData('cursor', '--write')
  t.match(rest, { done: /is written, made$/ })
  t.match(readFileSync(file?.path ?? '', 'utf8'), url)
  const odd = await cli(['connect', 'http://gw.internal/t/acme', '--host', 'cursor', '--json'], { HOME: home })
  t.match(JSON.parse(odd.out), { doubts: [/begins with http:/, /names no endpoint/] })
  t.equal(odd.err, '')
})

t.test('links hold the name, the URL and the key', async (t) => {
  const home = t.testdir()
  const [, code = ''] = /(vscode:\S+)/.exec((await connect(home, 'vscode')).out) ?? []
  t.same(JSON.parse(decodeURIComponent(code.split('?')[1] ?? '')), {
    name: 'gatehouse',
    type: 'http',
    url,
    headers: { Authorization: `Bearer ${key}` }
  })
  const [, cursor = ''] = /(cursor:\S+)/.exec((await connect(home, 'cursor')).out) ?? []
  const parameters = new URL(cursor).searchParams
  t.equal(parameters.get('name'), 'gatehouse')
  t.same(JSON.parse(Buffer.from(parameters.get('config') ?? '', 'base64').toString()), {
    url,
    headers: { Authorization: `Bearer ${key}` }
  })
})

t.test('a URL that is not as every host expects it', async (t) => {
  const home = t.testdir()
  const to = (given: string, host: string) =>
    cli(['connect', given, '--host', host], { HOME: home, GATEHOUSE_KEY: key })
  for (const given of ['http://gw.internal:8080/t/acme/mcp', 'http://[::1]:8080/t/acme/mcp'])
    t.match((await to(given, 'claude-desktop')).out, '"--allow-http"', given)
  for (const given of [url, 'http://localhost:8080/t/acme/mcp', 'http://127.0.0.1/t/acme/mcp'])
    t.notMatch((await to(given, 'claude-desktop')).out, 'allow-http', given)
  t.match((await to(`${url}?x=1&y=2`, 'claude-code')).out, `gatehouse '${url}?x=1&y=2' --header`)
  t.match((await to(`${url}?x=1&y=2`, 'inspector')).out, `--cli '${url}?x=1&y=2' --transport`)
  t.match((await to('https://mcp.example.com/t/acme', 'cursor')).err, /names no endpoint of a gateway: those end with/)
  t.notMatch((await to(url, 'cursor')).err, 'names no endpoint')
})

t.test(
  '--write again keeps the file from before the first change, its indentation, and the key from others',
  async (t) => {
    const before =
      '{\n    "mcpServers": {\n        "own": { "command": "x" },\n        "two": {\n            "command": "y"\n        }\n    }\n}\n'
    const home = t.testdir({ '.cursor': { 'mcp.json': before } })
    const path = join(home, '.cursor', 'mcp.json')
    chmodSync(path, 0o644)
    t.match(await connect(home, 'cursor', '--write'), {
      code: 0,
      out: /which only you can read now; the file of before/
    })
    t.equal(statSync(path).mode & 0o777, 0o600)
    const after = readFileSync(path, 'utf8')
    for (const line of before.split('\n').filter((line) => /[^}\s]/.test(line))) t.match(after, line)
    t.match(after, /\n {8}"gatehouse": \{\n {12}"url"/)
    t.match(await connect(home, 'cursor', '--write', '--name', 'second'), { code: 0, out: /is written/ })
    t.equal(readFileSync(`${path}.before-gatehouse`, 'utf8'), before)
    t.match(readFileSync(path, 'utf8'), '"second"')
  }
)

t.test('--write puts it into the file, keeps all else with its comments, and keeps the file as it was', async (t) => {
  const [home, folder] = [t.testdir(), process.cwd()]
  // The files of Claude Code and VS Code are those of the folder.
  process.chdir(home)
  t.teardown(() => process.chdir(folder))
  const place = { ...herePlace({ HOME: home }), platform: process.platform }
  const before: Readonly<Record<string, string>> = {
    cursor: '{\n  // mine\n  "mcpServers": {\n    "own": { "command": "x" }, // stays\n  },\n}\n',
    zed: '{\n  // theme\n  "theme": "One"\n}\n',
    codex: '# my settings\nmodel = "x"\n\n[mcp_servers.own]\ncommand = "x"\n',
    goose: '# mine\nGOOSE_MODEL: x # stays\nextensions:\n  own: { enabled: true, type: stdio, cmd: x }\n',
    vscode: '{\n  "servers": {\n    "own": { "command": "x" } // stays\n  }\n}\n',
    'claude-code': '{ "mcpServers": { "own": { "command": "x" } } }\n',
    'claude-desktop': ''
  }
  const withFiles = Object.keys(hosts).filter((host) => hosts[host]?.file !== undefined)
  t.same(Object.keys(before).toSorted(), withFiles.toSorted(), 'every host that has a file')
  for (const [host, text] of Object.entries(before)) {
    const path = hosts[host]?.file?.({ name: 'gatehouse', url, key }, place).path ?? ''
    t.match(path, home)
    mkdirSync(dirname(path), { recursive: true })
    if (text !== '') writeFileSync(path, text)
    t.match(await connect(home, host, '--write'), { code: 0, out: /is written/ }, host)
    const after = readFileSync(path, 'utf8')
    t.match(after, url)
    for (const comment of text.match(/(?:\/\/|#) .*$/gm) ?? []) t.match(after, comment, `${host} keeps ${comment}`)
    if (text !== '') t.equal(readFileSync(`${path}.before-gatehouse`, 'utf8'), text)
    t.match(await connect(home, host, '--write'), { code: 0, out: /already; nothing is changed/ }, `${host} again`)
    if (host === 'codex') t.match(parseToml(after), { model: 'x', mcp_servers: { own: {}, gatehouse: { url } } })
    if (host === 'goose') t.match(parseYaml(after), { extensions: { own: {}, gatehouse: { uri: url } } })
    // What was written is what the other side of this program reads.
    const read = await cli(['import', path])
    t.equal(read.code, 0, `${host}: ${read.err}`)
    const { upstreams } = (parseYaml(read.out) as Imported).tenants.demo
    if (text.includes('own')) t.ok('own' in upstreams, `${host} keeps its own`)
    t.ok(JSON.stringify(upstreams['gatehouse']).includes(url), `${host}: ${read.out}`)
  }
})

const fileOf = (home: string, host: string): string =>
  hosts[host]?.file?.({ name: 'gatehouse', url, key }, { home, folder: home, platform: process.platform }).path ?? ''
const withFiles = ['cursor', 'goose', 'claude-desktop', 'codex', 'zed']

t.test('an entry of ours is updated, with what its user has added to it, and it is told where it led', async (t) => {
  const home = t.testdir()
  const elsewhere = 'https://other.example.com/t/acme/mcp'
  const connectTo = (to: string, host: string, GATEHOUSE_KEY?: string) =>
    cli(['connect', to, '--host', host, '--write'], { HOME: home, ...(GATEHOUSE_KEY && { GATEHOUSE_KEY }) })
  for (const host of withFiles) {
    const path = fileOf(home, host)
    t.match(await connectTo(url, host, key), { code: 0, out: /is written, made/ })
    t.match(await connectTo(elsewhere, host, 'gatehouse_another_key'), { code: 0, out: `it led to ${url})` }, host)
    const after = readFileSync(path, 'utf8')
    t.match(after, elsewhere)
    t.match(after, host === 'codex' ? 'bearer_token_env_var = "GATEHOUSE_KEY"' : 'gatehouse_another_key')
    t.notMatch(after, url)
    t.match(await connectTo(elsewhere, host), { code: 0, out: /is replaced \(it led to the same URL\)/ }, host)
    t.notMatch(readFileSync(path, 'utf8'), /GATEHOUSE_KEY|another_key/, `${host}: it signs in now`)
  }
})

t.test('an entry of something else stays, whatever it holds', async (t) => {
  for (const other of [{ command: 'x', env: { GATEWAY: url } }, { url: 'https://mcp.example.com/mcp' }, 'x']) {
    const json = (member: string) => JSON.stringify({ [member]: { gatehouse: other } })
    const files = {
      zed: json('context_servers'),
      goose: json('extensions'),
      codex: toml({ mcp_servers: { gatehouse: other } })
    }
    const home = t.testdir()
    for (const [host, text] of Object.entries({
      cursor: json('mcpServers'),
      'claude-desktop': json('mcpServers'),
      ...files
    })) {
      const path = fileOf(home, host)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
      await t.rejects(connect(home, host, '--write'), { message: /gatehouse already, with something else/ }, host)
      t.equal(readFileSync(path, 'utf8'), text)
      t.notOk(existsSync(`${path}.before-gatehouse`))
      t.match(await connect(home, host, '--write', '--name', 'second'), { code: 0, out: /is written/ }, host)
      const after = readFileSync(path, 'utf8')
      t.match(after, url)
      if (host === 'codex') t.match(after, text)
    }
  }
})

t.test('of the files of Goose and Codex only the lines of the entry change', async (t) => {
  const old = 'https://old.example.com/t/acme/mcp'
  const goose = [
    '# mine',
    '"A": "x"   # x',
    'extensions:',
    '    # own',
    "    own: {'enabled': true}  # y",
    '',
    '    GAP',
    '',
    '    # last',
    '    last: {  a: 1 }',
    '# end',
    'B:   1',
    ''
  ]
  const codex = [
    '# mine',
    "model   = 'x'",
    'GAP',
    '',
    '# last',
    '[ mcp_servers . last ]',
    'args = [',
    '  "a", # b',
    ']',
    ''
  ]
  const whole = (rows: readonly string[], ...gap: readonly string[]) =>
    rows.flatMap((row) => (row.trim() === 'GAP' ? gap : [row])).join('\n')
  const gooseEntry = ['    gatehouse: # g', '        uri: ' + old, '        timeout: 9', '        available_tools: [a]']
  const codexEntry = [
    '[mcp_servers.gatehouse] # c',
    `url = '${old}'`,
    '',
    '[mcp_servers.gatehouse.tools.a]',
    "approval_mode = 'approve'"
  ]
  const written = async (host: string, text: string) => {
    const home = t.testdir()
    const path = fileOf(home, host)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    t.match(await connect(home, host, '--write'), { code: 0, out: /is (?:written|replaced)/ }, host)
    return readFileSync(path, 'utf8')
  }
  for (const [host, rows, entry] of [
    ['goose', goose, gooseEntry],
    ['codex', codex, codexEntry]
  ] as const) {
    for (const gap of [[], entry]) {
      const before = whole(rows, ...gap)
      const after = await written(host, before)
      const left = before.split('\n').filter((row) => !gap.includes(row))
      const isKept = (row: string): boolean => row === left[0] && left.shift() !== undefined
      const added = after
        .split('\n')
        .filter((row) => !isKept(row))
        .join('\n')
      t.same(left, [], `${host}: every other line stands where it stood`)
      t.match(added, url)
      t.notMatch(added, old)
      if (gap.length > 0)
        t.match(added, host === 'goose' ? /available_tools:\s+- a/ : /tools\.a\]\napproval_mode = "approve"/)
      const parsed: unknown = host === 'goose' ? parseYaml(after) : parseToml(after)
      t.match(
        parsed,
        host === 'goose'
          ? { extensions: { own: {}, last: { a: 1 }, gatehouse: { uri: url } }, B: 1 }
          : { mcp_servers: { last: { args: ['a'] }, gatehouse: { url } } }
      )
    }
  }
  // Where the lines cannot be told apart, all of it is there nevertheless.
  for (const text of [
    'extensions: {}\n',
    '{ extensions: { own: { a: 1 } } }',
    'extensions:\n',
    'A: 1',
    'extensions:\n  gatehouse:\n  b: { uri: x }\n',
    ''
  ])
    t.match(
      parseYaml(await written('goose', text)),
      { ...(parseYaml(text) as object), extensions: { gatehouse: { uri: url } } },
      text
    )
  for (const text of ['extensions: 5\n', '- a\n'])
    await t.rejects(written('goose', text), { message: /is no mapping at extensions/ }, text)
  const inline = `mcp_servers = { gatehouse = { url = "${old}" } }\n`
  await t.rejects(written('codex', inline), { message: /in a form that is not changed here/ })
})

t.test('an entry that moves to another gateway takes no credential along', async (t) => {
  for (const [from, isKept] of [
    ['https://old.example.com/t/acme/mcp', false],
    ['https://mcp.example.com/t/other/mcp', true]
  ] as const) {
    const home = t.testdir({
      '.codex': {
        'config.toml':
          `[mcp_servers.gatehouse]\nurl = "${from}"\nstartup_timeout_sec = 9\n\n` +
          '[mcp_servers.gatehouse.env_http_headers]\nX-Team = "TEAM_SECRET"\n'
      }
    })
    const told = isKept ? /is replaced \(it led to [^)]+\), changed/ : /\), without its env_http_headers, which may be/
    t.match(await connect(home, 'codex', '--write'), { code: 0, out: told })
    const after: unknown = parseToml(readFileSync(join(home, '.codex', 'config.toml'), 'utf8'))
    const entry = { url, startup_timeout_sec: 9, env_http_headers: isKept ? { 'X-Team': 'TEAM_SECRET' } : undefined }
    t.match(after, { mcp_servers: { gatehouse: entry } }, from)
  }
  const args = ['-y', 'mcp-remote', 'https://old.example.com/t/acme/mcp', '--header', 'Authorization: Bearer old']
  const proxied = { mcpServers: { gatehouse: { command: 'npx', args, env: { TOKEN: 'old' }, disabled: false } } }
  const home = t.testdir({ '.cursor': { 'mcp.json': JSON.stringify(proxied) } })
  t.match(await connect(home, 'cursor', '--write'), { code: 0, out: /\), without its command, args, env, which/ })
  const after: unknown = JSON.parse(readFileSync(join(home, '.cursor', 'mcp.json'), 'utf8'))
  const headers = { Authorization: `Bearer ${key}` }
  t.same(after, { mcpServers: { gatehouse: { disabled: false, url, headers } } })
})

t.test('a file that cannot be read as what it should be stays as it is', async (t) => {
  const home = t.testdir({
    '.cursor': { 'mcp.json': '{ "mcpServers": [' },
    '.codex': { 'config.toml': '[mcp_servers.gatehouse]\nurl = "x"\n' }
  })
  const path = join(home, '.cursor', 'mcp.json')
  await t.rejects(connect(home, 'cursor', '--write'), { message: `${path} is no JSON` })
  t.equal(readFileSync(path, 'utf8'), '{ "mcpServers": [')
  await t.rejects(connect(home, 'codex', '--write'), {
    message: /has mcp_servers\.gatehouse already, with something else/
  })
  t.notOk(existsSync(`${path}.before-gatehouse`))
})

t.test('what cannot be done is said', async (t) => {
  const home = t.testdir()
  t.match(await connect(home, 'chatgpt', '--write'), { code: 2, err: /ChatGPT has no file/ })
  t.match(await cli(['connect', url]), { code: 2, err: /connect needs --host, one of claude-code/ })
  t.match(await connect(home, 'cursor', '--name', 'a b'), { code: 2, err: /--name takes letters/ })
  const clear = await cli(['connect', 'http://mcp.example.com/t/acme/mcp', '--host', 'cursor'], { HOME: home })
  t.match(clear.err, /in clear/)
})
