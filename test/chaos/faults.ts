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
  /** Those that take the place of others. */
  readonly starting: Array<Promise<void>>
  /** Resolves when the load balancer sends requests to as many replicas as shall serve. */
  ready(): Promise<void>
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

export const faults: Readonly<Record<FaultName, (scene: Scene, chance: Random) => Promise<void>>> = {
  async kill(scene, chance) {
    const old = chance.pick(scene.nodes)
    old.signal('SIGKILL')
    await old.ended
    scene.nodes.splice(scene.nodes.indexOf(old), 1)
    scene.starting.push(scene.start().then((node) => void scene.nodes.push(node)))
    await scene.ready()
  },
  async roll(scene, chance) {
    const started = await scene.start()
    const old = chance.pick(scene.nodes)
    scene.ends.push(await old.stop())
    scene.nodes.splice(scene.nodes.indexOf(old), 1, started)
    await scene.ready()
  },
  async pause({ nodes, ready }, chance) {
    const node = chance.pick(nodes)
    node.signal('SIGSTOP')
    await wait(500 + chance.below(4_000))
    node.signal('SIGCONT')
    await ready()
  },
  async 'restart Redis'({ store, ready }) {
    await store.restart()
    await ready()
  },
  async 'pause Redis'({ store, ready }, chance) {
    store.pause()
    await wait(300 + chance.below(2_000))
    store.resume()
    await ready()
  },
  async 'fail over Redis'({ failOver, ready }) {
    if (failOver === undefined) throw new Error('one Redis alone cannot be failed over')
    await failOver()
    await ready()
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
