// Puts the entry of a gateway into the file of a host: comments, order and form of all else in the file stay.

import { isDeepStrictEqual } from 'node:util'
import { applyEdits, findNodeAtLocation, getNodeValue, modify, parseTree, type ParseError } from 'jsonc-parser'
import { parse as parseToml, stringify as toml } from 'smol-toml'
import { isMap, isNode, parse as parseYaml, parseDocument, stringify as yaml, type Document } from 'yaml'
import { serverOfTable } from '../../config/hosts/other-hosts.ts'
import { isTree, treeOf } from '../../config/shape.ts'
import type { HostFile } from '../../hosts/hosts.ts'

export interface ChangedFile {
  readonly text: string
  /** The URL of the entry that was there; undefined: there was none. */
  readonly before: string | undefined
  /** The names of members of that entry which are left out, because they may hold credentials of another gateway. */
  readonly left: readonly string[]
}

type Entry = Readonly<Record<string, unknown>>

/**
 * An entry of that name that leads to an endpoint of a gateway is updated; its members that no entry of ours has stay,
 * without those that may hold credentials of another gateway.
 * @param text of the file; empty where there is none. @param url of the entry
 * @throws {Error} where the file cannot be read as what it should be, or the entry of that name is something else
 */
export function withEntry(text: string, file: HostFile, url: string): ChangedFile {
  const { path, format, at, entry } = file
  const unreadable = (what: string): Error =>
    new Error(`${path} is no ${what}: mend it, or put what "gatehouse connect" prints without --write there by hand.`)
  /** @param found the entry of that name. @param put returns the text with another one */
  const updated = (found: unknown, put: (entry: Entry) => string): ChangedFile => {
    const before = urlOf(found)
    if (found !== undefined && (before === undefined || (before !== url && !isOfGateway(before))))
      throw new Error(
        `${path} has ${at.join('.')} already, with something else (no endpoint of a gateway). Remove it, or choose ` +
          'another --name.'
      )
    const isMoved = before !== undefined && originOf(before) !== originOf(url)
    const kept = isMoved ? withoutCredentials(treeOf(found)) : found
    const members = Object.entries({ ...treeOf(kept), ...entry }).filter(([, value]) => value !== undefined)
    const next = Object.fromEntries(members)
    const left = isMoved ? Object.keys(treeOf(found)).filter((name) => !(name in next)) : []
    return { text: isDeepStrictEqual(next, found) ? text : put(next), before, left }
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
    return updated(node && (getNodeValue(node) as unknown), (next) =>
      applyEdits(start, modify(start, [...at], next, { formattingOptions }))
    )
  }
  if (format === 'yaml') {
    const document = parseDocument(text)
    if (document.errors.length > 0) throw unreadable('YAML')
    const root: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
    const parent = treeOf(root)[at[0] ?? ''] ?? {}
    if (!isTree(root) || !isTree(parent)) throw unreadable(`mapping at ${at.slice(0, -1).join('.')}`)
    return updated(foundIn(root, at) ?? undefined, (next) => withYaml(text, document, at, next))
  }
  let values: Record<string, unknown>
  try {
    values = plainToml(text)
  } catch {
    throw unreadable('TOML')
  }
  return updated(foundIn(values, at), (next) => {
    const after = withToml(text, at, next)
    const [table = '', name = ''] = at
    const wanted = { ...values, [table]: { ...treeOf(values[table]), [name]: next } }
    if (
      !isDeepStrictEqual(
        readOr(() => plainToml(after)),
        wanted
      )
    )
      throw new Error(`${path} has ${at.join('.')} in a form that is not changed here: change it by hand.`)
    return after
  })
}

/** With the prototypes of ordinary objects, so that it can be compared. @throws {Error} */
const plainToml = (text: string): Record<string, unknown> => structuredClone(parseToml(text))

const foundIn = (root: unknown, at: readonly string[]): unknown =>
  at.reduce((found: unknown, name) => treeOf(found)[name], root)

/** Where an entry leads that has a form which `connect` writes. */
function urlOf(found: unknown): string | undefined {
  const { url, uri, args } = treeOf(found)
  const words: readonly unknown[] = Array.isArray(args) ? args : []
  const proxy = words.indexOf('mcp-remote')
  const target = uri ?? url ?? (proxy === -1 ? undefined : words[proxy + 1])
  return typeof target === 'string' ? target : undefined
}

const isOfGateway = (url: string): boolean =>
  /\/t\/[^/]+(?:\/[^/]+)?\/(?:mcp|sse)\/?$/.test(URL.parse(url)?.pathname ?? '')

const originOf = (url: string): string | undefined => URL.parse(url)?.origin

/** Members of entries, of any host, that hold or name a credential, start a proxy with one, or say where it goes. */
const credentialMembers: ReadonlySet<string> = new Set([
  ...['headers', 'http_headers', 'env_http_headers', 'headersHelper', 'bearer_token_env_var', 'auth', 'oauth'],
  ...['env', 'envs', 'env_keys', 'env_vars', 'envFile', 'command', 'cmd', 'args', 'url', 'uri']
])

const withoutCredentials = (entry: Entry): Entry =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => !credentialMembers.has(name)))

/** Finds the indentation of the file, so that the other lines stay unchanged. */
function indentationOf(text: string): { insertSpaces: boolean; tabSize: number } {
  const [, first = '  '] = /\n([ \t]+)\S/.exec(text) ?? []
  return { insertSpaces: !first.startsWith('\t'), tabSize: first.startsWith('\t') ? 1 : first.length }
}

/** Where the entry cannot be put into the text, the file is written anew, from the document with its comments. */
function withYaml(text: string, document: Document, at: readonly string[], entry: Entry): string {
  const after = withYamlLines(text, document, at, entry)
  // A key without a value, which is no mapping yet.
  if (document.has(at[0]) && document.get(at[0]) === undefined) document.delete(at[0])
  document.setIn(at, document.createNode(entry))
  const wanted: unknown = document.toJS({ maxAliasCount: 100 })
  return isDeepStrictEqual(
    readOr(() => parseYaml(after) as unknown),
    wanted
  )
    ? after
    : document.toString({ lineWidth: 0 })
}

function withYamlLines(text: string, document: Document, at: readonly string[], entry: Entry): string {
  const [table = '', name = ''] = at
  const map = document.get(table)
  const first = isMap(map) ? startOf(map.items[0]?.key) : undefined
  const indent = first === undefined ? '  ' : text.slice(text.lastIndexOf('\n', first - 1) + 1, first)
  const lines = yaml({ [name]: entry }, { lineWidth: 0 }).replaceAll(/^(?=.)/gm, indent)
  if (!isMap(map) || first === undefined) return `${ended(text)}${table}:\n${lines}`
  const pair = map.items.find(({ key }) => String(key) === name)
  const from = startOf(pair?.key)
  const to = isNode(pair?.value) ? pair.value.range?.[1] : undefined
  if (from !== undefined && to !== undefined)
    return text.slice(0, from) + (text[to - 1] === '\n' ? lines : lines.trimEnd()).trimStart() + text.slice(to)
  const end = map.range?.[1] ?? text.length
  return ended(text.slice(0, end)) + lines + text.slice(end)
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined)

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** @returns the text with the lines of the entry, which have another form where it is written as an inline table */
function withToml(text: string, at: readonly string[], entry: Entry): string {
  const [table = '', name = ''] = at
  const lines = toml({ [table]: { [name]: entry } })
  const rows = text.split('\n')
  const isOwn = (row: string): boolean => serverOfTable(row) === name
  const from = rows.findIndex(isOwn)
  if (from === -1) return `${ended(text)}${text === '' || text.endsWith('\n\n') ? '' : '\n'}${lines}`
  const next = rows.findIndex((row, index) => index > from && /^\s*\[/.test(row) && !isOwn(row))
  let to = next === -1 ? rows.length : next
  while (/^\s*(?:#|$)/.test(rows[to - 1] ?? '')) to -= 1
  return rows.toSpliced(from, to - from, lines.trimEnd()).join('\n')
}

function readOr(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}
