import { readFileSync } from 'node:fs'
import t from 'tap'
import { stringify } from 'yaml'
import { importMcpJson } from '../../src/config/hosts/mcpjson.ts'
import { compiled, problemsOf } from './kit.ts'

const sample = (name: string) => importMcpJson(readFileSync(new URL(`samples/${name}`, import.meta.url), 'utf8'))
const upstreams = (config: object) =>
  (config as { tenants: { demo: { upstreams: Record<string, unknown> } } }).tenants.demo.upstreams
const GATEHOUSE_KEY = 'q7Xw2Zr9Lk4Vb8Nt'

t.test('the file of Claude Desktop', async (t) => {
  const { config, notes } = sample('claude_desktop_config.json')
  t.same(upstreams(config), {
    filesystem: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-filesystem', '/Users/kim/Desktop', '/Users/kim/Downloads']
    },
    'Brave-Search': {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-brave-search'],
      env: { BRAVE_API_KEY: 'YOUR_API_KEY_HERE' }
    },
    postgres: {
      command: 'docker',
      args: ['run', '-i', '--rm', 'mcp/postgres', 'postgresql://host.docker.internal:5432/mydb'],
      disabled: true
    }
  })
  t.match(notes, [/Left out.*"globalShortcut", "preferences"/, /"Brave Search" is now upstream "Brave-Search"/])
  t.equal(notes.length, 2)
  t.same(problemsOf(config, { env: { GATEHOUSE_KEY } }), [])
})

t.test('the file of VS Code, with comments, trailing commas and inputs', async (t) => {
  const { config, notes } = sample('vscode-mcp.json')
  t.same(upstreams(config), {
    perplexity: {
      type: 'stdio',
      command: 'npx',
      args: ['-y', 'server-perplexity-ask'],
      env: { PERPLEXITY_API_KEY: '${PERPLEXITY_KEY}', REGION: '${REGION:-eu}' }
    },
    github: {
      type: 'http',
      url: 'https://api.githubcopilot.com/mcp/',
      headers: { Authorization: 'Bearer ${GITHUB_TOKEN}' }
    },
    everything: { command: 'node', args: ['${workspaceFolder}/server.js', '${HOME}/data', '${CONFIG_MCP_PORT}'] },
    old: { type: 'sse', url: 'http://localhost:3001/sse' }
  })
  for (const note of [
    /Set PERPLEXITY_KEY .*\(Perplexity API Key\)/,
    /REGION may be set/,
    /"envFile" is left out/,
    /"dev" is left out/,
    /only an editor knows \$\{workspaceFolder\}/,
    /Set CONFIG_MCP_PORT/,
    /"gallery" is left out/
  ]) {
    t.ok(
      notes.some((text) => note.test(text)),
      String(note)
    )
  }
  const unset = problemsOf(config).map(({ message }) => /variable (\w+)/.exec(message)?.[1])
  t.same(unset, ['GATEHOUSE_KEY', 'PERPLEXITY_KEY', 'GITHUB_TOKEN', 'workspaceFolder', 'HOME', 'CONFIG_MCP_PORT'])
  const env = Object.fromEntries(unset.map((name) => [name, GATEHOUSE_KEY]))
  t.equal([...compiled(config, { env }).tenants.values()][0]?.upstreams.size, 4)
})

t.test('the file of Cursor and its kin', async (t) => {
  const { config, notes } = sample('cursor-mcp.json')
  t.same(upstreams(config), {
    linear: { url: 'https://mcp.linear.app/mcp', headers: { Authorization: 'Bearer ${LINEAR_TOKEN}' } },
    sentry: { type: 'streamableHttp', url: 'https://mcp.sentry.dev/mcp' },
    'sqlite-main': { command: 'uvx', args: ['mcp-server-sqlite', '--db-path', '~/test.db'], env: { DEBUG: '1' } },
    'sqlite-main-2': { command: 'uvx', args: ['mcp-server-sqlite'] },
    'claude-code': {
      command: '${HOME}/bin/server',
      env: { API_BASE: '${API_BASE:-https://api.example.com}', LITERAL: 'a $${ b' }
    },
    windsurf: { url: 'https://mcp.example.com/mcp', disabled: false }
  })
  for (const note of [
    /"timeout" is left out: .*timeoutMs/,
    /"alwaysAllow" is left out/,
    /"autoApprove" is left out/,
    /1 variable without a value/,
    /"broken" is left out/
  ]) {
    t.ok(
      notes.some((text) => note.test(text)),
      String(note)
    )
  }
  t.same(problemsOf(config, { env: { GATEHOUSE_KEY, LINEAR_TOKEN: 'x', HOME: '/home/kim' } }), [])
})

t.test('what import prints as YAML compiles to the same', async (t) => {
  const { config } = sample('cursor-mcp.json')
  const env = { GATEHOUSE_KEY, LINEAR_TOKEN: 'x', HOME: '/home/kim' }
  t.same(compiled(stringify(config), { env }), compiled(config, { env }))
})

t.test('settings.json of VS Code keeps its servers one level down', async (t) => {
  t.same(upstreams(importMcpJson('{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "b"}}}}').config), {
    a: { command: 'b' }
  })
})

t.test('what is no such file is refused without quoting it', async (t) => {
  t.throws(() => importMcpJson('{"mcpServers": {"a": {"env": {"K": "s3cr3t" "x"'), {
    name: 'ConfigError',
    message: /is not JSON/
  })
  try {
    importMcpJson('{"mcpServers": {"K": s3cr3t}}')
  } catch (error) {
    t.notMatch(String(error), 's3cr3t')
  }
  t.throws(() => importMcpJson('[]'), { message: /not a JSON object/ })
  t.throws(() => importMcpJson('{"rooms": {}}'), { message: /neither mcpServers nor servers/ })
  t.throws(() => importMcpJson('{"tenants": {}}'), { message: /is a configuration, and no file of a host/ })
})

t.test('where a host signs in, each person connects an account', async (t) => {
  const servers = {
    gemini: {
      url: 'https://a.example/mcp',
      oauth: {
        enabled: true,
        clientId: 'g',
        clientSecret: '${env:SECRET}',
        authorizationUrl: 'https://a.example/authorize',
        tokenUrl: 'https://a.example/token',
        scopes: ['read', 'write'],
        redirectUri: 'http://localhost:7777'
      }
    },
    claude: { url: 'https://b.example/mcp', oauth: { clientId: 'c', callbackPort: 8080 } },
    cursor: {
      url: 'https://c.example/mcp',
      auth: { CLIENT_ID: 'u', CLIENT_SECRET: 's3cr3t-of-cursor', scopes: ['x'] }
    },
    opencode: { url: 'https://d.example/mcp', oauth: { scope: 'a b', tokenUrl: 'https://d.example/token' } },
    off: { url: 'https://e.example/mcp', oauth: false },
    header: { url: 'https://f.example/mcp', headers: { authorization: 'Bearer ${env:TOKEN}' }, oauth: {} }
  }
  const { config, notes } = importMcpJson(JSON.stringify({ mcpServers: servers }))
  const auth = Object.fromEntries(
    Object.entries(upstreams(config)).map(([name, upstream]) => [name, (upstream as { auth?: object }).auth])
  )
  t.same(auth, {
    gemini: {
      type: 'user',
      clientId: 'g',
      clientSecret: '${SECRET}',
      authorizationUrl: 'https://a.example/authorize',
      tokenUrl: 'https://a.example/token',
      scopes: ['read', 'write']
    },
    claude: { type: 'user', clientId: 'c' },
    cursor: { type: 'user', clientId: 'u', clientSecret: 's3cr3t-of-cursor', scopes: ['x'] },
    opencode: { type: 'user', scopes: ['a', 'b'] },
    off: undefined,
    header: undefined
  })
  for (const note of [
    /"gemini": each person connects/,
    /"gemini": of its signing in, "redirectUri" left out/,
    /"header": signing in is left out, because its headers have Authorization/
  ])
    t.equal(notes.filter((text) => note.test(text)).length, 1, String(note))
  t.notOk(notes.some((text) => text.includes('s3cr3t')))
  const env = { GATEHOUSE_KEY, SECRET: 'x', TOKEN: 'y', GATEHOUSE_VAULT_KEY: Buffer.alloc(32, 7).toString('base64') }
  t.same(problemsOf(config, { env }), [])
})

t.test('transport is another word for type', async (t) => {
  const { config, notes } = importMcpJson(
    '{"mcpServers":{"mail":{"url":"https://a.example/sse","transport":"sse"},"web":{"url":"https://b.example/mcp","transport":"carrier ' +
      'pigeon"}}}'
  )
  t.match(config, {
    tenants: {
      demo: {
        upstreams: { mail: { url: 'https://a.example/sse', type: 'sse' }, web: { url: 'https://b.example/mcp' } }
      }
    }
  })
  t.same(notes.filter((note) => note.includes('transport')).length, 1, 'one that means nothing is told')
})
