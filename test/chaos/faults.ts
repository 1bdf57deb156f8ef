// What fails in a run: replicas are killed, paused, cut off and replaced, Redis is restarted, servers die and return.

import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { descendants } from '../e2e/kit/process.ts'
import type { Served } from '../kit/process.ts'
import type { PrivateRedis } from '../kit/redis.ts'
import type { TcpLink } from '../kit/tcp-link.ts'

export interface Scene {
  /** The replicas that run; changed by faults. */
  readonly nodes: Served[]
  start(): Promise<Served>
  /** Resolves when the load balancer sends requests to so many replicas. */
  ready(replicas: number): Promise<void>
  readonly store: PrivateRedis
  /** Where the store is Redis with a Sentinel: kills the primary, and resolves when there are two again. */
  failOver?(): Promise<void>
  /** The way to the server over HTTP. */
  readonly web: TcpLink
  /** How the replicas ended that were told to. */
  readonly ends: Array<{ readonly code: number | null; readonly signal: string | null }>
}

export type FaultName =
  | ('kill' | 'pause' | 'roll')
  | ('restart Redis' | 'pause Redis' | 'fail over Redis')
  | ('break upstream' | 'kill children')

/** Puts a new replica in the place of one, before it goes or after. */
async function replace(
  scene: Scene,
  chance: Random,
  end: (old: Served) => Promise<void>,
  first: boolean
): Promise<void> {
  const old = chance.pick(scene.nodes)
  const started = first ? await scene.start() : undefined
  await end(old)
  scene.nodes.splice(scene.nodes.indexOf(old), 1, started ?? (await scene.start()))
  await scene.ready(scene.nodes.length)
}

export const faults: Readonly<Record<FaultName, (scene: Scene, chance: Random) => Promise<void>>> = {
  kill: (scene, chance) =>
    replace(
      scene,
      chance,
      async ({ signal, ended }) => {
        signal('SIGKILL')
        await ended
      },
      false
    ),
  roll: (scene, chance) =>
    replace(
      scene,
      chance,
      async (old) => {
        scene.ends.push(await old.stop())
      },
      true
    ),
  async pause({ nodes, ready }, chance) {
    const node = chance.pick(nodes)
    node.signal('SIGSTOP')
    await wait(500 + chance.below(4_000))
    node.signal('SIGCONT')
    await ready(nodes.length)
  },
  async 'restart Redis'({ store, ready, nodes }) {
    await store.restart()
    await ready(nodes.length)
  },
  async 'pause Redis'({ store, ready, nodes }, chance) {
    store.pause()
    await wait(300 + chance.below(2_000))
    store.resume()
    await ready(nodes.length)
  },
  async 'fail over Redis'({ failOver, ready, nodes }) {
    if (failOver === undefined) throw new Error('one Redis alone cannot be failed over')
    await failOver()
    await ready(nodes.length)
  },
  async 'break upstream'({ web }) {
    web.pass()
  },
  async 'kill children'({ nodes }, chance) {
    for (const pid of descendants(chance.pick(nodes).pid)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}
