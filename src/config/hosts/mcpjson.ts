// Converts other hosts' files to a configuration: mcp.json of VS Code (`servers`), Claude, Cursor and others
// (`mcpServers`). Everything that is dropped or changes its meaning is reported in a note.

import { countOf, ConfigError, quoted } from '../problems.ts'
import { codexFile, gooseFile, jsonFile, type OtherHostFile } from './other-hosts.ts'
import { createRewrite, type Rewrite } from './host-references.ts'
import { doubtsAbout } from './server-doubts.ts'
import { signInOf } from './sign-in.ts'
import { isTree, treeOf, type Tree } from '../shape.ts'

/**
 * @param path for messages; `.toml` is a file of Codex, `.yaml` one of Goose
 * @param folder of which servers are taken where the file has some for each (Claude Code)
 * @returns `format` is what it is, with its article; `config` passes compileConfig once the variables named in the
 * notes are set; `placeOf` says where an upstream stands in the file
 * @throws ConfigError where the text is no such file
 */
export function importMcpJson(text: string, path = 'mcp.json', folder = '') {
  const file = readFileOf(text, path, folder)
  const notes: string[] = [...file.notes]
  if (file.ignored.length > 0)
    notes.push(`Left out, because it is not about servers: ${file.ignored.map(quoted).join(', ')}.`)
  const rewrite = createRewrite(file.inputs, notes)
  const upstreams: Record<string, Tree> = {}
  const names = new Map<string, string>()
  for (const [name, server] of Object.entries(file.servers)) {
    const upstream = upstreamOf(name, server, rewrite, notes)
    if (upstream === undefined) continue
    const valid = freeName(name, upstreams)
    if (valid !== name)
      notes.push(
        `Server ${quoted(name)} is now upstream ${quoted(valid)}: names have letters, digits, "_", "." and "-".`
      )
    upstreams[valid] = upstream
    names.set(valid, name)
    notes.push(...doubtsAbout(name, upstream))
  }
  if (Object.keys(upstreams).length === 0)
    notes.push(`${path} has no server that can be used: nothing is offered. Add one to it, or give another file.`)
  const auth = { keys: [{ name: 'default', key: '${GATEHOUSE_KEY}', scopes: ['mcp'] }] }
  const placeOf = (upstream: string, steps: readonly string[] = []) => {
    const server = names.get(upstream) ?? upstream
    return { server, line: file.lineOf(server, steps) }
  }
  const vault = Object.values(upstreams).some((upstream) => upstream['auth'] !== undefined) && {
    vault: { keys: [{ id: '1', key: '${GATEHOUSE_VAULT_KEY}' }] }
  }
  const { format } = file
  return { format, config: { ...vault, tenants: { demo: { auth, upstreams } } }, notes, placeOf }
}

/** @throws ConfigError */
function readFileOf(text: string, path: string, folder: string): OtherHostFile {
  const refused = (message: string, suggestion = 'Give an mcp.json or a claude_desktop_config.json.'): ConfigError =>
    new ConfigError(path, [{ path: '', message, suggestion }])
  const [isToml, isYaml] = [/\.toml$/i.test(path), /\.ya?ml$/i.test(path)]
  const ofCodex = 'Give the config.toml of Codex.'
  const ofGoose = 'Give the config.yaml of Goose.'
  let found: OtherHostFile | undefined
  // The parsers' own messages quote the text, and the text holds keys.
  try {
    if (isToml) found = codexFile(text)
    else if (isYaml) found = gooseFile(text)
    else {
      const root: unknown = JSON.parse(plainJson(text))
      if (!isTree(root)) throw refused('is not a JSON object')
      found = jsonFile(text, root, folder)
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (isToml) throw refused('is not TOML', ofCodex)
    if (isYaml) throw refused('is not YAML', ofGoose)
    throw refused('is not JSON', 'Comments and trailing commas are fine; check quotes, commas and braces.')
  }
  if (found === undefined && isToml) throw refused('has no table mcp_servers', ofCodex)
  if (found === undefined && /(?:^|[{,])\s*["']?tenants["']?\s*:/m.test(text))
    throw refused('this is a configuration, and no file of a host', `Serve it with: gatehouse serve --config ${path}`)
  if (found === undefined && isYaml) throw refused('has no extensions', ofGoose)
  if (found === undefined) throw refused('has neither mcpServers nor servers')
  return found
}

// An unfinished string ends with its line, so that a missing quote does not hide the rest of the file.
const string = '"(?:[^"\\\\\\n\\r]|\\\\.)*"?'

/** JSON with comments and trailing commas, as VS Code writes it, to JSON. */
export function plainJson(text: string): string {
  const kept = (_all: string, quoted: string | undefined): string => quoted ?? ' '
  return (
    text
      .replace(/^\ufeff/, '')
      .replace(new RegExp(`(${string})|//[^\\n\\r]*|/\\*[^]*?(?:\\*/|$)`, 'g'), kept)
      // Only a comma after a value can be a trailing one.
      .replace(new RegExp(`(${string})|(?<![[{,:]\\s*),(?=\\s*[}\\]])`, 'g'), kept)
  )
}

/** Keys of other hosts that have no counterpart, and what to do about them. */
const dropped: Readonly<Record<string, string>> = {
  timeout: 'hosts disagree on its unit. If it is needed, set timeoutMs, in milliseconds',
  envFile: 'put what the server needs under env',
  autoApprove: 'approving calls is for the host',
  alwaysAllow: 'approving calls is for the host',
  trust: 'approving calls is for the host',
  gallery: 'it is a mark of the host'
}

const kinds: ReadonlySet<unknown> = new Set(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse'])

function upstreamOf(name: string, server: unknown, rewrite: Rewrite, notes: string[]): Tree | undefined {
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
      ? ['type', 'command', 'args', 'env', 'inheritEnv', 'cwd', 'disabled']
      : ['type', 'headers', 'disabled']
  const result: Record<string, unknown> = {}
  // Some hosts say `transport` where others say `type`.
  if (typeof url === 'string' && server['type'] === undefined && kinds.has(server['transport']))
    result['type'] = server['transport']
  if (!kept.includes('command')) result['url'] = rewrite(url, label)
  for (const [key, value] of Object.entries(server)) {
    if (key === 'type' && !kinds.has(value)) notes.push(`${label}: its type is not known and is left out.`)
    else if (kept.includes(key))
      result[key] = key === 'env' ? withoutEmpty(rewrite(value, label), label, notes) : rewrite(value, label)
    else if (key === 'enabled' && value === false) result['disabled'] = true
    else if (key === 'transport' && kinds.has(value)) continue
    else if ((key === 'oauth' || key === 'auth') && !kept.includes('command')) continue
    else if (!['url', 'serverUrl', 'httpUrl', 'enabled'].includes(key) || (key === 'url' && kept.includes('command'))) {
      notes.push(
        `${label}: ${quoted(key)} is left out` +
          (dropped[key] === undefined ? '; there is nothing like it here.' : `: ${dropped[key]}.`)
      )
    }
  }
  if (!kept.includes('command')) addSignIn(result, server, rewrite, label, notes)
  return result
}

/** @param result where `auth` is added */
function addSignIn(
  result: Record<string, unknown>,
  server: Tree,
  rewrite: Rewrite,
  label: string,
  notes: string[]
): void {
  const { auth, ignored } = signInOf(server)
  if (auth === undefined) return
  if (Object.keys(treeOf(result['headers'])).some((name) => name.toLowerCase() === 'authorization')) {
    notes.push(`${label}: signing in is left out, because its headers have Authorization.`)
    return
  }
  result['auth'] = rewrite(auth, label)
  notes.push(`${label}: each person connects an account of their own, on the page /t/demo/connections.`)
  if (ignored.length > 0) notes.push(`${label}: of its signing in, ${ignored.map(quoted).join(', ')} left out.`)
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
