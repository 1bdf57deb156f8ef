// Any other MCP gateway, measured in turn with ours: a file says how it is started, and with which configuration.

import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { freePort } from '../../test/kit/free-port.ts'
import { findCores } from '../cpu.ts'
import { apiKey, pinned, untilListening, type Peer, type Stage } from '../stage.ts'
import type { Way } from '../workloads.ts'

export interface OtherGateway {
  readonly name: string
  /** Program and arguments. */
  readonly command: readonly string[]
  /** File in the folder of the bench, and the template beside the description that it is written from. */
  readonly files: Readonly<Record<string, string>>
  /** Endpoints: `default` has `/legacy/4` of the upstream, `modern` `/modern/4`, `lists` five times `/legacy/20`. */
  readonly paths: Readonly<Record<string, string>>
  readonly token: 'jwt' | 'key'
  /** The folder of the description. */
  readonly folder: string
}

/** @throws Error where a member is missing */
export function readOtherGateway(file: string): OtherGateway {
  const read = JSON.parse(readFileSync(file, 'utf8')) as Partial<OtherGateway>
  const { name, command, files = {}, paths, token = 'key' } = read
  if (name === undefined || command === undefined || paths === undefined)
    throw new Error(`${file} needs "name", "command" and "paths": see bench/README.md`)
  return { name, command, files, paths, token, folder: dirname(resolve(file)) }
}

/** @returns the way through it that does what `way` does at our gateway, unless it has no such endpoint */
export function wayThrough({ name, paths, token }: OtherGateway, way: Way): Way | undefined {
  const [, endpoint = 'default'] = /^\/t\/bench\/(?:(.+)\/)?mcp$/.exec(way.path) ?? []
  const path = paths[endpoint]
  return path === undefined ? undefined : { via: name, path, client: way.client, token }
}

/** In commands and templates `{port}`, `{upstream}`, `{folder}`, `{key}` and `{issuer}` are replaced. */
export async function startOtherGateway(stage: Stage, other: OtherGateway, upstream: string): Promise<Peer> {
  const port = await freePort()
  const known: Readonly<Record<string, string>> = {
    port: String(port),
    upstream,
    folder: stage.folder,
    key: apiKey,
    issuer: stage.issuer.url
  }
  const fill = (text: string): string => text.replaceAll(/\{(\w+)\}/g, (all, name: string) => known[name] ?? all)
  for (const [file, template] of Object.entries(other.files))
    writeFileSync(join(stage.folder, file), fill(readFileSync(join(other.folder, template), 'utf8')))
  const [command, ...args] = pinned(findCores(), 'middle', other.command.map(fill))
  const logFile = join(stage.folder, `${other.name}.log`)
  const log = openSync(logFile, 'a')
  const child = spawn(command, args, { stdio: ['ignore', log, log] })
  closeSync(log)
  stage.own(child)
  try {
    await untilListening(port)
  } catch (error) {
    throw new Error(`${other.name} does not listen:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`, { cause: error })
  }
  const { pid = 0 } = child
  return { child, pid, pids: [pid], origin: `http://127.0.0.1:${port}` }
}
