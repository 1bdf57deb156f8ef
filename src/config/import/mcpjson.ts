// Converts other hosts' files to a configuration: mcp.json of VS Code (`servers`), Claude, Cursor and others
// (`mcpServers`). Everything that is dropped or changes its meaning is reported in a note.

import { plainJson } from './jsonc.ts'
import { countOf, ConfigError, quoted } from '../problems.ts'
import { createInputReferences, type InputReferences } from './mcpjson-references.ts'
import { isTree, type Tree } from '../schema/shape.ts'

export interface ImportOptions {
  readonly tenant?: string
  /** For messages. */
  readonly path?: string
}

export interface ImportedConfig {
  /** Passes compileConfig once the variables named in the notes are set. */
  readonly config: Tree
  readonly notes: readonly string[]
}

/** @throws ConfigError where the text is no such file */
export function importMcpJson(text: string, options: ImportOptions = {}): ImportedConfig {
  const root = parse(text, options.path ?? 'mcp.json')
  const found = serversOf(root)
  if (found === undefined) {
    throw new ConfigError(options.path ?? 'mcp.json', [
      {
        path: '',
        message: 'has neither mcpServers nor servers',
        suggestion: 'Give an mcp.json or a claude_desktop_config.json.'
      }
    ])
  }
  const notes: string[] = []
  const ignored = Object.keys(root).filter(
    (key) => !['mcpServers', 'servers', 'inputs', 'mcp', '$schema'].includes(key)
  )
  if (ignored.length > 0) notes.push(`Left out, because it is not about servers: ${ignored.map(quoted).join(', ')}.`)
  const inputs = createInputReferences(found.inputs, notes)
  const upstreams: Record<string, Tree> = {}
  for (const [name, server] of Object.entries(found.servers)) {
    const upstream = upstreamOf(name, server, inputs, notes)
    if (upstream === undefined) continue
    const valid = freeName(name, upstreams)
    if (valid !== name)
      notes.push(
        `Server ${quoted(name)} is now upstream ${quoted(valid)}: names have letters, digits, "_", "." and "-".`
      )
    upstreams[valid] = upstream
  }
  const tenant = {
    auth: { keys: [{ name: 'default', key: '${GATEHOUSE_KEY}', scopes: ['mcp'] }] },
    upstreams
  }
  return { config: { tenants: { [options.tenant ?? 'demo']: tenant } }, notes }
}

function parse(text: string, path: string): Tree {
  let root: unknown
  try {
    root = JSON.parse(plainJson(text))
  } catch {
    // The parser's own message quotes the text, and the text holds keys.
    throw new ConfigError(path, [
      {
        path: '',
        message: 'is not JSON',
        suggestion: 'Comments and trailing commas are fine; check quotes, commas and braces.'
      }
    ])
  }
  if (!isTree(root))
    throw new ConfigError(path, [
      { path: '', message: 'is not a JSON object', suggestion: 'Give an mcp.json or a claude_desktop_config.json.' }
    ])
  return root
}

function serversOf(root: Tree): { servers: Tree; inputs: unknown } | undefined {
  // In settings.json of VS Code the same stands under "mcp".
  for (const part of [root, root['mcp']]) {
    if (!isTree(part)) continue
    const servers = part['mcpServers'] ?? part['servers']
    if (isTree(servers)) return { servers, inputs: part['inputs'] }
  }
  return undefined
}

/** Keys of other hosts that have no counterpart, and what to do about them. */
const dropped: Readonly<Record<string, string>> = {
  timeout: 'hosts disagree on its unit. If it is needed, set timeoutMs, in milliseconds',
  envFile: 'put what the server needs under env',
  autoApprove: 'approving calls is for the host',
  alwaysAllow: 'approving calls is for the host',
  trust: 'approving calls is for the host',
  gallery: 'it is a mark of the host',
  oauth: 'signing in at upstreams is not supported yet by this version',
  auth: 'signing in at upstreams is not supported yet by this version'
}

const kinds: ReadonlySet<unknown> = new Set(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse'])

function upstreamOf(name: string, server: unknown, inputs: InputReferences, notes: string[]): Tree | undefined {
  const label = `Server ${quoted(name)}`
  if (!isTree(server)) {
    notes.push(`${label} is left out: it is not an object.`)
    return undefined
  }
  const url = server['url'] ?? server['serverUrl'] ?? server['httpUrl']
  if (typeof server['command'] !== 'string' && typeof url !== 'string') {
    notes.push(`${label} is left out: it has neither command nor url.`)
    return undefined
  }
  const kept =
    typeof server['command'] === 'string'
      ? ['type', 'command', 'args', 'env', 'cwd', 'disabled']
      : ['type', 'headers', 'disabled']
  const result: Record<string, unknown> = {}
  // Some hosts say `transport` where others say `type`.
  if (typeof url === 'string' && server['type'] === undefined && kinds.has(server['transport']))
    result['type'] = server['transport']
  if (!kept.includes('command')) result['url'] = inputs.rewrite(url, label)
  for (const [key, value] of Object.entries(server)) {
    if (key === 'type' && !kinds.has(value)) notes.push(`${label}: its type is not known and is left out.`)
    else if (kept.includes(key))
      result[key] =
        key === 'env' ? withoutEmpty(inputs.rewrite(value, label), label, notes) : inputs.rewrite(value, label)
    else if (key === 'enabled' && value === false) result['disabled'] = true
    else if (key === 'transport' && kinds.has(value)) continue
    else if (!['url', 'serverUrl', 'httpUrl', 'enabled'].includes(key) || (key === 'url' && kept.includes('command'))) {
      notes.push(
        `${label}: ${quoted(key)} is left out` +
          (dropped[key] === undefined ? '; there is nothing like it here.' : `: ${dropped[key]}.`)
      )
    }
  }
  return result
}

/** VS Code removes a variable by null and lets numbers stand for text. */
function withoutEmpty(env: unknown, label: string, notes: string[]): unknown {
  if (!isTree(env)) return env
  const empty = Object.entries(env).filter(([, value]) => value === null)
  if (empty.length > 0) notes.push(`${label}: ${countOf(empty.length, 'variable')} without a value left out of env.`)
  return Object.fromEntries(
    Object.entries(env)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, typeof value === 'number' || typeof value === 'boolean' ? String(value) : value])
  )
}

function freeName(name: string, taken: Tree): string {
  const base =
    name
      .normalize('NFKD')
      .replace(/[\u0300-\u036f]/g, '')
      .replace(/[^A-Za-z0-9_.-]+/g, '-')
      .replace(/^[^A-Za-z0-9]+|-+$/g, '')
      .slice(0, 56) || 'server'
  let candidate = base
  for (let count = 2; Object.hasOwn(taken, candidate); count++) candidate = `${base}-${count}`
  return candidate
}
