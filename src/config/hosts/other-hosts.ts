// The files in which other hosts keep their servers, each in the form that mcp.json has: Claude, Cursor, Windsurf and
// many others (`mcpServers`), VS Code (`servers`), Zed (`context_servers`), Codex (TOML), Goose (YAML). Claude Code has
// those of one folder apart from those of all.

import { findNodeAtLocation, parseTree } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { isMap, LineCounter, parseDocument } from 'yaml'
import { isTree, treeOf, type Tree } from '../shape.ts'

export interface OtherHostFile {
  /** What it is, with its article: `the config.toml of Codex`. */
  readonly format: string
  /** By name, as mcp.json has them. */
  readonly servers: Tree
  /** Of VS Code. */
  readonly inputs: unknown
  /** Keys of the file that are not about servers. */
  readonly ignored: readonly string[]
  /** What differs from mcp.json, and was left out. */
  readonly notes: readonly string[]
  /** The first line is 1; undefined: it cannot be said. @param steps below the server */
  lineOf(server: string, steps?: readonly string[]): number | undefined
}

const places = ['mcpServers', 'servers', 'context_servers']
const notAboutServers = new Set([...places, 'inputs', 'mcp', '$schema'])

/** Is it one of these files, and no configuration of the gateway? @param root its content */
export const isOfOtherHost = (root: unknown, form: 'json' | 'yaml'): boolean =>
  isTree(root) &&
  root['tenants'] === undefined &&
  (form === 'yaml' ? isTree(root['extensions']) : serversIn(root, '') !== undefined)

/** @throws {Error} where it is not TOML */
export function codexFile(text: string): OtherHostFile | undefined {
  const root = parseToml(text) as Tree
  const servers = root['mcp_servers']
  if (!isTree(servers)) return undefined
  const named = text.split('\n').map(serverOfTable)
  return {
    format: 'the config.toml of Codex',
    servers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, fromCodex(treeOf(server))])),
    inputs: undefined,
    ignored: Object.keys(root).filter((key) => key !== 'mcp_servers'),
    notes: [],
    lineOf(server) {
      const at = named.indexOf(server)
      return at === -1 ? undefined : at + 1
    }
  }
}

/** The name of the server of Codex whose table, or one within it, a line begins; undefined: it begins none. */
export const serverOfTable = (line: string): string | undefined => tableOfServer.exec(line)?.slice(1).find(Boolean)

/** The name in double quotes, in single ones or bare. */
const tableOfServer = /^\s*\[\s*mcp_servers\s*\.\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[\].]/

function fromCodex({
  bearer_token_env_var: tokenName,
  http_headers: headers,
  env_http_headers: fromEnv,
  env_vars: inheritEnv,
  startup_timeout_sec: _start,
  tool_timeout_sec: _tool,
  ...server
}: Tree): Tree {
  const named = Object.entries(treeOf(fromEnv)).map(([name, value]) => [name, `\${env:${String(value)}}`])
  const all = {
    ...treeOf(headers),
    ...Object.fromEntries(named),
    ...(typeof tokenName === 'string' && { Authorization: `Bearer \${env:${tokenName}}` })
  }
  return {
    ...server,
    ...(Object.keys(all).length > 0 && { headers: all }),
    ...(Array.isArray(inheritEnv) && { inheritEnv })
  }
}

/** @throws {Error} where it is not YAML */
export function gooseFile(text: string): OtherHostFile | undefined {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: false })
  const [error] = document.errors
  if (error !== undefined) throw error
  const root: unknown = document.toJS({ maxAliasCount: 100 })
  const extensions = isTree(root) ? root['extensions'] : undefined
  if (!isTree(root) || !isTree(extensions)) return undefined
  const entries = Object.entries(extensions).map(([name, extension]) => [name, treeOf(extension)] as const)
  const own = entries.filter(([, { type }]) => ['stdio', 'streamable_http', 'sse'].includes(String(type)))
  const others = entries.filter((each) => !own.includes(each)).map(([name]) => name)
  return {
    format: 'the config.yaml of Goose',
    servers: Object.fromEntries(own.map(([name, extension]) => [name, fromGoose(extension)])),
    inputs: undefined,
    ignored: Object.keys(root).filter((key) => key !== 'extensions'),
    notes: others.length === 0 ? [] : [`Left out, because they are built into Goose: ${others.join(', ')}.`],
    lineOf(server) {
      const map = document.get('extensions')
      const pair = isMap(map) ? map.items.find(({ key }) => String(key) === server) : undefined
      const range = (pair?.key as { readonly range?: readonly number[] } | undefined)?.range
      return range?.[0] === undefined ? undefined : counter.linePos(range[0]).line
    }
  }
}

function fromGoose(extension: Tree): Tree {
  const { cmd, args, envs, env_keys: keys, uri, headers, type, enabled } = extension
  const named = (Array.isArray(keys) ? keys : []).map((key) => [String(key), `\${env:${String(key)}}`])
  const env = { ...treeOf(envs), ...Object.fromEntries(named) }
  return {
    ...(typeof cmd === 'string'
      ? { command: cmd, args: args ?? [], env }
      : { type: type === 'sse' ? 'sse' : 'http', url: uri, headers: withVariables(treeOf(headers), env) }),
    ...(enabled === false && { enabled })
  }
}

/** Goose replaces `$NAME` and `${NAME}` in headers. @param env of the server: text, or references */
function withVariables(headers: Tree, env: Tree): Tree {
  const replaced = (all: string, bare: string | undefined, braced = bare): string => {
    const value = env[braced ?? '']
    return typeof value === 'string' ? value : all
  }
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replace(/\$(?:([A-Za-z_]\w*)|\{\s*([A-Za-z_]\w*)\s*\})/g, replaced) : value
    ])
  )
}

interface FoundServers extends Pick<OtherHostFile, 'format' | 'notes'> {
  readonly servers: Tree
  /** Where each stands. */
  place(server: string): readonly string[]
  /** What is beside them. */
  readonly part: Tree
}

const titles: Readonly<Record<string, string>> = {
  mcp: 'the settings.json of VS Code',
  context_servers: 'the settings.json of Zed'
}

/** @param folder whose servers are taken, where a file has some for each */
function serversIn(root: Tree, folder: string): FoundServers | undefined {
  const ofFolders = ofClaudeCode(root, folder)
  if (ofFolders !== undefined) return ofFolders
  // In settings.json of VS Code the same stands under "mcp".
  for (const [part, above] of [
    [root, []],
    [root['mcp'], ['mcp']]
  ] as const) {
    if (!isTree(part)) continue
    for (const name of places) {
      const servers = part[name]
      const at = [...above, name]
      if (!isTree(servers)) continue
      return {
        format: titles[at[0] ?? ''] ?? 'an mcp.json',
        notes: [],
        servers,
        place: (server) => [...at, server],
        part
      }
    }
  }
  return undefined
}

/** Its ~/.claude.json: `mcpServers` for all folders, and `projects.<folder>.mcpServers`, which come before those. */
function ofClaudeCode(root: Tree, folder: string): FoundServers | undefined {
  const counts = Object.entries(treeOf(root['projects'])).map(
    ([name, project]) => [name, Object.keys(serversOf(project)).length] as const
  )
  if (!counts.some(([, count]) => count > 0)) return undefined
  const own = serversOf(treeOf(root['projects'])[folder])
  const others = counts.filter(([name, count]) => count > 0 && name !== folder)
  const listed = others.map(([name, count]) => `${name} (${count})`).join(', ')
  const left = `Left out, because they are of other folders: servers of ${listed}. Run this there to take those.`
  return {
    format: 'the .claude.json of Claude Code',
    notes: others.length === 0 ? [] : [left],
    servers: { ...serversOf(root), ...own },
    place: (server) => [...(Object.hasOwn(own, server) ? ['projects', folder] : []), 'mcpServers', server],
    // All else is what the host keeps for itself.
    part: {}
  }
}

const serversOf = (part: unknown): Tree => treeOf(treeOf(part)['mcpServers'])

/** @param text of the file, with its comments. @param root its content. @param folder as for `serversIn` */
export function jsonFile(text: string, root: Tree, folder: string): OtherHostFile | undefined {
  const found = serversIn(root, folder)
  if (found === undefined) return undefined
  const { format, notes, servers, place, part } = found
  const isWhole = part === root || part === root['mcp']
  return {
    format,
    notes,
    servers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, fromZed(server)])),
    inputs: part['inputs'],
    ignored: isWhole ? Object.keys(root).filter((key) => !notAboutServers.has(key)) : [],
    lineOf(server, steps = []) {
      const tree = parseTree(text, [], { allowTrailingComma: true })
      if (tree === undefined) return undefined
      const at = place(server)
      const whole = [...at, ...steps]
      for (let length = whole.length; length >= at.length; length--) {
        const node = findNodeAtLocation(
          tree,
          whole.slice(0, length).map((step) => (/^\d+$/.test(step) ? Number(step) : step))
        )
        if (node !== undefined) return text.slice(0, (node.parent ?? node).offset).split('\n').length
      }
      return undefined
    }
  }
}

/** Older files of Zed have an object as `command`. */
function fromZed(server: unknown): unknown {
  if (!isTree(server)) return server
  const { source: _source, settings: _settings, ...rest } = server
  const { command } = rest
  if (!isTree(command)) return server['source'] === undefined ? server : rest
  const { path, args = [], env = {} } = command
  return { ...rest, command: path, args, env: env ?? {} }
}
