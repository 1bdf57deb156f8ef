// `connect`: prints the snippet, link or command with which a host reaches an endpoint; --write adds the entry to the
// host's file and leaves the rest of the file unchanged.

import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { applyEdits, modify, parseTree, findNodeAtLocation, getNodeValue, type ParseError } from 'jsonc-parser'
import { stringify as toml, parse as parseToml } from 'smol-toml'
import { parseDocument } from 'yaml'
import { treeOf } from '../../config/shape.ts'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { herePlace, hosts, type Connection, type HostFile } from '../../hosts/hosts.ts'
import { snippetOf } from '../../hosts/snippet.ts'
import { jsonText } from '../printed.ts'
import { credentialOf, endpointUrl } from './target.ts'

/** @returns the exit code. @throws UsageError */
export async function runConnect(given: Given, { env, stdout, stderr }: Io): Promise<number> {
  const { host: wanted, name = 'gatehouse', write, json } = given.options
  const [endpoint = ''] = given.operands
  const host = wanted === undefined ? undefined : hosts[wanted]
  if (host === undefined) throw new UsageError(`connect needs --host, one of ${Object.keys(hosts).join(', ')}.`)
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name))
    throw new UsageError(`--name takes letters, digits, "_" and "-", not "${name}".`)
  const connection: Connection = { name, url: endpointUrl(endpoint, env), key: await credentialOf(given, env) }
  const file = host.file?.(connection, herePlace(env))
  const command = host.command?.(connection)
  const link = host.link?.(connection)
  const notes = host.notes(connection)
  const doubts = doubtsOf(connection)
  let done: string | undefined
  if (write !== undefined) {
    if (file === undefined)
      throw new UsageError(`${host.title} has no file that could be written. Leave --write out: what to do is printed.`)
    done = await written(file, connection)
  }
  if (json !== undefined) {
    const part = file && { path: file.path, format: file.format, at: file.at, snippet: snippetOf(file) }
    const title = host.title
    const { url } = connection
    stdout.write(jsonText({ host: wanted, title, name, url, file: part, command, link, done, notes, doubts }))
    return 0
  }
  if (file !== undefined && done !== undefined) stdout.write(`${file.path}: ${done}\n`)
  else {
    if (file !== undefined) stdout.write(`Into ${file.path}:\n\n${indented(snippetOf(file))}\n`)
    if (command !== undefined) stdout.write(`${file === undefined ? 'Run' : 'Or run'}:\n\n  ${command}\n\n`)
    if (link !== undefined) stdout.write(`Or open:\n\n  ${link}\n\n`)
  }
  const output = file === undefined && command === undefined ? stdout : stderr
  for (const note of notes) output.write(`${note}\n`)
  for (const doubt of doubts) stderr.write(`note: ${doubt}\n`)
  return 0
}

/** Warnings about a URL that is probably not the intended one. */
const doubtsOf = ({ url }: Connection): string[] => [
  ...(url.startsWith('http://') && !/^http:\/\/(?:localhost|127\.|\[::1\])/.test(url)
    ? ['the URL begins with http://: keys and tokens go over the network in clear.']
    : []),
  ...(/\/(?:mcp|sse)\/?$/.test(new URL(url).pathname)
    ? []
    : ['the URL names no endpoint of a gateway: those end with /mcp, as https://HOST/t/TENANT/mcp does.'])
]

const indented = (text: string): string => text.trimEnd().replaceAll(/^(?=.)/gm, '  ') + '\n'

/** @returns what was done. @throws {Error} where the file cannot be read as what it should be */
async function written(file: HostFile, { url, key }: Connection): Promise<string> {
  const { path, at } = file
  const before = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new Error(`${path} cannot be read (${error.code}).`, { cause: error })
  })
  const { text: after, isReplaced } = changed(before ?? '', file, url)
  if (after === before) return `has ${at.join('.')} already; nothing is changed`
  await mkdir(dirname(path), { recursive: true })
  if (before === undefined) {
    await writeFile(path, after, { mode: 0o600 })
    return `${at.join('.')} is written, made`
  }
  await keepFirst(path)
  const closed = key !== undefined && (await closeToOthers(path)) ? ', which only you can read now' : ''
  await writeFile(path, after)
  const how = isReplaced ? 'is replaced (it led to the same URL)' : 'is written'
  return `${at.join('.')} ${how}, changed${closed}; the file of before is ${path}.before-gatehouse`
}

/** Copies the file before the first change. Later changes keep that copy: it is the file without our entries. */
async function keepFirst(path: string): Promise<void> {
  await copyFile(path, `${path}.before-gatehouse`, constants.COPYFILE_EXCL).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** @returns whether others could read it before */
async function closeToOthers(path: string): Promise<boolean> {
  const { mode } = await stat(path)
  if ((mode & 0o077) === 0) return false
  await chmod(path, mode & 0o700)
  return true
}

/** Finds the indentation of the file, so that the other lines stay unchanged. */
function indentationOf(text: string): { insertSpaces: boolean; tabSize: number } {
  const [, first = '  '] = /\n([ \t]+)\S/.exec(text) ?? []
  return { insertSpaces: !first.startsWith('\t'), tabSize: first.startsWith('\t') ? 1 : first.length }
}

/**
 * Comments and order of the rest stay. An entry of that name is replaced where it leads to the same URL, with another
 * key; one of something else stays. @throws {Error}
 */
function changed(
  text: string,
  { path, format, at, entry }: HostFile,
  url: string
): { readonly text: string; readonly isReplaced: boolean } {
  const unreadable = (what: string): Error =>
    new Error(`${path} is no ${what}: mend it, or put what "gatehouse connect" prints without --write there by hand.`)
  const other = (): Error =>
    new Error(`${path} has ${at.join('.')} already, with something else. Remove it, or choose another --name.`)
  const isThere = (found: unknown): boolean => {
    if (found === undefined) return false
    if (!JSON.stringify(found).includes(JSON.stringify(url))) throw other()
    return true
  }
  if (format === 'json') {
    const errors: ParseError[] = []
    const start = text.trim() === '' ? '{}\n' : text
    const root = parseTree(start, errors, { allowTrailingComma: true })
    if (root?.type !== 'object' || errors.length > 0) throw unreadable('JSON')
    const parent = findNodeAtLocation(root, at.slice(0, -1))
    if (parent !== undefined && parent.type !== 'object') throw unreadable(`object at ${at.slice(0, -1).join('.')}`)
    const formattingOptions = { ...indentationOf(start), insertFinalNewline: true }
    const node = findNodeAtLocation(root, [...at])
    const isReplaced = isThere(node && getNodeValue(node))
    return { text: applyEdits(start, modify(start, [...at], entry, { formattingOptions })), isReplaced }
  }
  if (format === 'yaml') {
    const document = parseDocument(text)
    if (document.errors.length > 0) throw unreadable('YAML')
    const root: unknown = document.toJS({ maxAliasCount: 100 })
    const isReplaced = isThere(at.reduce((found: unknown, name) => treeOf(found)[name], root))
    document.setIn(at, document.createNode(entry))
    return { text: document.toString({ lineWidth: 0 }), isReplaced }
  }
  let values: Record<string, unknown>
  try {
    values = parseToml(text)
  } catch {
    throw unreadable('TOML')
  }
  const [table = '', name = ''] = at
  const tables = values[table]
  // TOML that was written by hand is only added to.
  if (typeof tables === 'object' && tables !== null && Object.hasOwn(tables, name)) {
    if (toml({ a: (tables as Record<string, unknown>)[name] }) === toml({ a: entry }))
      return { text, isReplaced: false }
    throw other()
  }
  const gap = text === '' || text.endsWith('\n\n') ? '' : text.endsWith('\n') ? '\n' : '\n\n'
  return { text: `${text}${gap}${toml({ [table]: { [name]: entry } })}`, isReplaced: false }
}
