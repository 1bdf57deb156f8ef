// Peers of other languages: their servers behind the gateway met with the newest client, and their clients at its door.

import { type Teardown } from '../../kit/until.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { key } from '../../kit/gateway.ts'
import { startHouse } from '../../kit/replicas.ts'
import { connect, newest } from './sdks.ts'
import { serverOf, startServer, type Command } from './servers.ts'
import { tour } from './tour.ts'

export interface Outcome {
  readonly peer: string
  readonly step: string
  /** What went wrong; undefined: nothing. */
  readonly failure: string | undefined
}

const same = (own: string): string => own
const stepMs = 60_000

/** Runs the tour with the newest client through a gateway of its own. A `command` speaks stdio, or says `ready URL`. */
export async function meetServer(peer: string, transport: 'stdio' | 'http', command: Command): Promise<Outcome[]> {
  return await within(async (t) => {
    const up = transport === 'stdio' ? command : { type: 'http', url: await startServer(t, command) }
    const house = await startHouse(t, {
      upstreams: { up },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      limits: { coldStartMs: 30_000 }
    })
    const { client, types } = await connect(t, newest, 'http', house.url(), key)
    const outcomes: Outcome[] = []
    for (const { name, run } of tour({
      client,
      types,
      clientKnows: newest.revision,
      serverKnows: newest.revision,
      name: same,
      uri: same
    })) {
      const failure = await Promise.race([run().then(() => undefined, String), late()])
      outcomes.push({ peer, step: name, failure })
    }
    return outcomes
  })
}

/**
 * Runs a client that is told the URL of a gateway as its last argument and prints `ok NAME` or `not ok NAME: REASON`
 * for each step.
 */
export async function meetClient(peer: string, door: 'mcp' | 'sse', { command, args }: Command): Promise<Outcome[]> {
  return await within(async (t) => {
    const up = { type: 'http', url: await startServer(t, serverOf(newest, 'http')) }
    const house = await startHouse(t, {
      upstreams: { up },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      limits: { coldStartMs: 30_000 }
    })
    const child = spawn(command, [...args, house.url().replace(/mcp$/, door)], {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], GATEHOUSE_TOKEN: key },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 180_000
    })
    const outcomes: Outcome[] = []
    const errors: string[] = []
    createInterface(child.stderr).on('line', (line) => {
      errors.push(line)
    })
    createInterface(child.stdout).on('line', (line) => {
      const [, not, step = '', failure = ''] = /^(not )?ok ([^:]+)(?:: (.*))?$/.exec(line) ?? []
      if (step !== '') outcomes.push({ peer, step, failure: not === undefined ? undefined : failure })
    })
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0 || outcomes.length === 0)
      outcomes.push({ peer, step: 'runs to its end', failure: `exit ${code}: ${errors.slice(-6).join(' | ')}` })
    return outcomes
  })
}

/** Runs teardowns in the order opposite to their making. */
export async function within(run: (t: Teardown) => Promise<Outcome[]>): Promise<Outcome[]> {
  const closing: Array<() => unknown> = []
  try {
    return await run({
      teardown: (close) => {
        closing.push(close)
      }
    })
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

const late = (): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(() => resolve(`not done within ${stepMs} ms`), stepMs).unref()
  })
