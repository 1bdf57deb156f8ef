// What each host needs to reach an endpoint: where its file is, what goes into it, its deep link or its command.

import { homedir } from 'node:os'
import { join } from 'node:path'

export interface Connection {
  /** The name of the server in the host. */
  readonly name: string
  readonly url: string
  /** undefined: the host signs in by itself. */
  readonly key: string | undefined
}

export interface HostFile {
  readonly path: string
  readonly format: 'json' | 'yaml' | 'toml'
  /** The place in the file, and the value. */
  readonly at: readonly string[]
  /** An undefined member is left out, and taken out of an entry that has it. */
  readonly entry: Readonly<Record<string, unknown>>
}

export interface Host {
  readonly title: string
  /** undefined: it is set up by hand, or by a command. */
  file?(connection: Connection, place: Place): HostFile
  /** Returns one line for a shell. */
  command?(connection: Connection): string
  /** Opens the host with everything filled in. */
  link?(connection: Connection): string
  /** Returns what a person has to do, or to know. */
  notes(connection: Connection): readonly string[]
}

/** The folders of the person at this machine. */
export interface Place {
  readonly home: string
  readonly folder: string
  readonly platform: NodeJS.Platform
}

export const herePlace = (env: NodeJS.ProcessEnv): Place => ({
  home: env['HOME'] ?? homedir(),
  folder: process.cwd(),
  platform: process.platform
})

const bearer = (key: string): string => `Bearer ${key}`
const headers = (key: string | undefined) => ({ headers: key && { Authorization: bearer(key) } })
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
const signsIn = ({ key }: Connection, how: string): string[] =>
  key === undefined ? [`${how} It finds the login by the URL alone.`] : []
const keyInFile = ({ key }: Connection, path: string): string[] =>
  key === undefined ? [] : [`The file then holds the key: keep ${path} out of version control.`]

const settingsFolder = ({ home, platform }: Place): string =>
  platform === 'darwin'
    ? join(home, 'Library', 'Application Support')
    : platform === 'win32'
      ? join(home, 'AppData', 'Roaming')
      : join(home, '.config')

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
/** Quotes a text as one word of a shell. */
const word = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : quote(text))

/** mcp-remote takes other URLs without TLS only where it is told to. */
const allowHttp = (url: string): string[] =>
  /^http:\/\/(?!(?:localhost|127\.0\.0\.1)[:/])/.test(url) ? ['--allow-http'] : []

export const hosts: Readonly<Record<string, Host>> = {
  'claude-code': {
    title: 'Claude Code',
    file: ({ name, url, key }, { folder }) => ({
      path: join(folder, '.mcp.json'),
      format: 'json',
      at: ['mcpServers', name],
      entry: { type: 'http', url, ...headers(key) }
    }),
    command: ({ name, url, key }) =>
      `claude mcp add --transport http ${name} ${word(url)}` +
      (key === undefined ? '' : ` --header ${quote(`Authorization: ${bearer(key)}`)}`),
    notes: (connection) => [
      ...signsIn(connection, 'Then type /mcp and choose Authenticate.'),
      ...keyInFile(connection, '.mcp.json')
    ]
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    file: ({ name, url, key }, place) => ({
      path: join(settingsFolder(place), 'Claude', 'claude_desktop_config.json'),
      format: 'json',
      at: ['mcpServers', name],
      // Spaces inside of an argument get lost on some systems: the header has none, and its value stands in env.
      entry: {
        command: 'npx',
        args: [
          '-y',
          'mcp-remote',
          url,
          ...allowHttp(url),
          ...(key === undefined ? [] : ['--header', 'Authorization:${AUTH_HEADER}'])
        ],
        env: key && { AUTH_HEADER: bearer(key) }
      }
    }),
    notes: (connection) => [
      connection.key === undefined
        ? `Without a file: Settings, Connectors, "Add custom connector", and the URL ${connection.url}. Claude calls ` +
          'it from its own servers, so it has to be reachable from the Internet.'
        : 'Its connectors know no API keys, so mcp-remote, a program that needs Node, stands between.',
      'Quit and start Claude Desktop after a change.'
    ]
  },
  vscode: {
    title: 'VS Code',
    file: ({ name, url, key }, { folder }) => ({
      path: join(folder, '.vscode', 'mcp.json'),
      format: 'json',
      at: ['servers', name],
      entry: { type: 'http', url, ...headers(key) }
    }),
    link: ({ name, url, key }) =>
      `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url, ...headers(key) }))}`,
    notes: (connection) => [
      ...signsIn(connection, 'VS Code asks for the login when it starts the server.'),
      ...keyInFile(connection, '.vscode/mcp.json')
    ]
  },
  cursor: {
    title: 'Cursor',
    file: ({ name, url, key }, { home }) => ({
      path: join(home, '.cursor', 'mcp.json'),
      format: 'json',
      at: ['mcpServers', name],
      entry: { url, ...headers(key) }
    }),
    link: ({ name, url, key }) =>
      `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=` +
      encodeURIComponent(base64({ url, ...headers(key) })),
    notes: (connection) => signsIn(connection, 'Cursor shows "Needs login" in its MCP settings.')
  },
  chatgpt: {
    title: 'ChatGPT',
    notes: ({ name, url, key }) => [
      'Settings, Apps & Connectors, Advanced settings: switch on developer mode. Then Create:',
      `Name ${name}, URL ${url}, Authentication: OAuth${key === undefined ? '' : ', as it knows no API keys'}.`,
      'ChatGPT calls it from its own servers: the URL has to begin with https:// and be reachable from the Internet.',
      ...(key === undefined
        ? []
        : ['The tenant needs auth.issuers or auth.login for that (docs/login.md): the key is of no use here.'])
    ]
  },
  zed: {
    title: 'Zed',
    file: ({ name, url, key }, { home }) => ({
      path: join(home, '.config', 'zed', 'settings.json'),
      format: 'json',
      at: ['context_servers', name],
      entry: { url, ...headers(key) }
    }),
    notes: (connection) => signsIn(connection, 'Zed asks for the login in Settings, AI, MCP Servers.')
  },
  codex: {
    title: 'Codex',
    file: ({ name, url, key }, { home }) => ({
      path: join(home, '.codex', 'config.toml'),
      format: 'toml',
      at: ['mcp_servers', name],
      entry: { url, bearer_token_env_var: key && 'GATEHOUSE_KEY' }
    }),
    notes: (connection) => [
      ...(connection.key === undefined
        ? [`Sign in once: codex mcp login ${connection.name}`]
        : ['Codex takes the key from the environment: export GATEHOUSE_KEY=… before it starts.'])
    ]
  },
  goose: {
    title: 'Goose',
    file: ({ name, url, key }, { home, platform }) => ({
      path:
        platform === 'win32'
          ? join(home, 'AppData', 'Roaming', 'Block', 'goose', 'config', 'config.yaml')
          : join(home, '.config', 'goose', 'config.yaml'),
      format: 'yaml',
      at: ['extensions', name],
      entry: {
        enabled: true,
        type: 'streamable_http',
        name,
        description: 'MCP servers behind Gatehouse',
        uri: url,
        ...headers(key),
        timeout: 300
      }
    }),
    notes: (connection) => signsIn(connection, 'Goose opens a browser at the first call.')
  },
  inspector: {
    title: 'MCP Inspector',
    command: ({ url, key }) =>
      `npx @modelcontextprotocol/inspector --cli ${word(url)} --transport http` +
      (key === undefined ? '' : ` --header ${quote(`Authorization: ${bearer(key)}`)}`) +
      ' --method tools/list',
    notes: () => ['It needs Node.js 22.19 or newer.', 'Without --cli and --method it opens a page in the browser.']
  }
}
