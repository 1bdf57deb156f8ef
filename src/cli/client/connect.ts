// `connect`: prints the snippet, link or command with which a host reaches an endpoint; --write adds the entry to the
// host's file and leaves the rest of the file unchanged.

import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { UsageError, type Given, type Io } from '../commands/command.ts'
import { herePlace, hosts, type Connection, type HostFile } from '../../hosts/hosts.ts'
import { snippetOf } from '../../hosts/snippet.ts'
import { jsonText } from '../printed.ts'
import { withEntry } from './host-file.ts'
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
  const { text: after, before: led, left } = withEntry(before ?? '', file, url)
  if (after === before) return `has ${at.join('.')} already; nothing is changed`
  await mkdir(dirname(path), { recursive: true })
  if (before === undefined) {
    await writeFile(path, after, { mode: 0o600 })
    return `${at.join('.')} is written, made`
  }
  await keepFirst(path)
  const closed = key !== undefined && (await closeToOthers(path)) ? ', which only you can read now' : ''
  await writeFile(path, after)
  const how = led === undefined ? 'is written' : `is replaced (it led to ${led === url ? 'the same URL' : led})`
  const without = left.length === 0 ? '' : `, without its ${left.join(', ')}, which may be for the gateway there`
  return `${at.join('.')} ${how}${without}, changed${closed}; the file of before is ${path}.before-gatehouse`
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
