// What the admin API makes: documents of tenants in the store, compiled together with the file's configuration at every
// process. A tenant of the file is the file's; a document that does not compile at a process leaves its tenant there as
// it was, and nobody else's.

import { withTenants } from '../config/compile.ts'
import type { Problem } from '../config/problems.ts'
import type { Environment } from '../config/references.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { tenantId } from '../protocol/messages.ts'
import { controlChannel } from '../store/keys.ts'
import { type Store, unavailable } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { type Clock, every, steadyClock } from '../time/clock.ts'
import type { WorkOwner } from '../time/fair-queue.ts'
import {
  createCompiledDocuments,
  documentPrefix,
  wholeDocumentsIn,
  type DocumentChange,
  type Documents
} from './compiled-documents.ts'
import { ControlError } from './control-error.ts'
import { createJournal } from './journal.ts'
import { createJudge, type ChangeRequest } from './judge.ts'
import { createWorkerJudge } from './document/judge-in-worker.ts'
import { createKillSwitches, type Commit, type KillSwitch } from './kill-switches.ts'
import { killTextsAfter, lastChangeOf, removedTenants, textNamesOf } from './removed-tenants.ts'
import { createFairMutex } from './fair-mutex.ts'
import { createIdempotency } from './idempotency.ts'

/** How often each process looks for versions that it was not told of. */
export const pollMs = 1_000
/** Times that a change is judged again because another one came first. */
const maxAttempts = 16

export type Control = Awaited<ReturnType<typeof createControl>>

interface ControlOptions {
  readonly store: Store
  readonly sealer: Sealer
  /** What the file says, with the settings that hold until the process ends. */
  readonly file: () => Snapshot
  /** Where `${NAME}` in documents of platform-admins comes from. */
  readonly env: Environment
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

/** Whoever waits for the journal: what stops something waits for no change, and no author for all those of another. */
const ownerOf = (tenant: 'change' | 'kill', { author }: Pick<ChangeRequest, 'author'>): WorkOwner => ({
  tenant,
  caller: author.name
})
const own: WorkOwner = { tenant: 'own', caller: '' }
const reading: WorkOwner = { tenant: 'reading', caller: '' }

const textNamesIn = (tenant: string | undefined) => (tenant === undefined ? undefined : textNamesOf(tenant))

const textsOf = (changes: readonly DocumentChange[]): Map<string, string | undefined> =>
  new Map(changes.map(({ tenant, after }) => [documentPrefix + tenant, after?.text]))

/** Reads the documents, where the store answers. Never rejects. */
export async function createControl(options: ControlOptions) {
  const { store, file, wall, log } = options
  const isOfFile = (tenant: string): boolean => file().tenants.has(tenantId(tenant))
  const journal = createJournal(options)
  const workerJudge = createWorkerJudge(options.env)
  const compiled = createCompiledDocuments({ ...options, workerJudge })
  // The journal takes one call after the other.
  const { exclusive, close: closeMutex } = createFairMutex()
  let onChange = (): void => {}
  let stop = async (): Promise<void> => {}
  async function takeUp(): Promise<void> {
    compiled.take(journal.texts())
    await compiled.prepare()
    onChange()
  }
  async function sync(mayHaveLost = false): Promise<void> {
    const found = await journal.pull(mayHaveLost)
    if (found === 'same' && compiled.isPrepared()) return
    if (found === 'replaced') compiled.forget()
    await takeUp()
  }
  const poll = (mayHaveLost = false): void => {
    exclusive(own, () => sync(mayHaveLost)).catch((err: unknown) =>
      log.debug({ err }, 'documents of the admin API cannot be read now')
    )
  }
  await exclusive(own, () => journal.pull()).then(
    () => compiled.take(journal.texts()),
    (err: unknown) => log.warn({ err }, 'the tenants that the admin API made cannot be read yet')
  )
  const { judge, checkOwner } = createJudge({ file, compiled, workerJudge, version: () => journal.version })

  /** @param judged what to write, judged anew where another writer was first: new texts; undefined: removed */
  const commit: Commit = async (about, judged, attempt = 1) => {
    await sync()
    const texts = await judged()
    if (texts.size === 0) return
    const at = new Date(wall.now()).toISOString()
    if (!(await journal.append({ ...about, at }, texts))) {
      if (attempt < maxAttempts) return await commit(about, judged, attempt + 1)
      throw new ControlError('conflict', 'Others change the configuration at the same time.', 'Try again.')
    }
    await takeUp()
    // The others find it at their next look in any case.
    await store.publish(controlChannel, String(journal.version)).catch((err: unknown) => {
      log.debug({ err }, 'other processes are not told of a change')
    })
  }

  async function write(request: ChangeRequest): Promise<readonly DocumentChange[]> {
    const { author, action, removed } = request
    let changes: readonly DocumentChange[] = []
    await commit({ author, action }, async () => {
      changes = await judge(request)
      compiled.expect(changes)
      const ending = changes.filter((each) => !isOfFile(each.tenant))
      return new Map([...textsOf(changes), ...killTextsAfter(ending, compiled.killsOf, removed)])
    })
    return changes
  }

  const isKnown = (tenant: string): boolean => isOfFile(tenant) || compiled.documents.has(tenant)
  const documentsAt = (version: number, tenant?: string): Promise<Documents | undefined> =>
    exclusive(reading, async () => wholeDocumentsIn(await journal.at(version, textNamesIn(tenant))))

  const kills = createKillSwitches({ killsOf: compiled.killsOf, isKnown, targetsOf: compiled.targetsOf, commit, wall })

  return {
    /** From now on what others change is taken up. @param changed called after what `snapshot` returns has changed */
    async start(changed: () => void): Promise<void> {
      onChange = changed
      const timer = every(steadyClock, pollMs, () => {
        // Nobody else writes to a store of one process.
        if (store.shared || !journal.loaded || !compiled.isPrepared()) poll()
      })
      const unsubscribe = await store.subscribe(controlChannel, () => poll())
      store.onLost(() => poll(true))
      stop = async () => {
        timer.close()
        await unsubscribe()
      }
    },
    /** Those of now, of tenants that the file does not have. @throws GatewayError unavailable before the first read */
    documents(): Documents {
      if (!journal.loaded) throw unavailable('The store could not be read yet. Retry in a second.')
      return new Map([...compiled.documents].filter(([id]) => !isOfFile(id)))
    },
    get version() {
      return journal.version
    },
    lastChangeOf: (tenant: string): number => lastChangeOf(journal, tenant),
    /** Of routes that take an Idempotency-Key. */
    requests: createIdempotency(options),
    /** @throws ControlError managed_by_file */
    checkOwner,
    /** What keeps this process from being ready. */
    fault: (): string | undefined =>
      journal.loaded ? undefined : 'the tenants that the admin API made could not be read from the store yet',
    /** Why the newest document of a tenant is not in use at this process; empty where it is. */
    problemsOf: (tenant: string): readonly Problem[] => compiled.problemsOf(tenant),
    /** The configuration of the file with the tenants of documents. */
    snapshot: (): Snapshot => withTenants(file(), compiled.tenants(), journal.loaded && compiled.hasAll()),

    /**
     * Makes a change, in force at this process when it resolves, and at others within a second.
     * @returns nothing where everything is so already
     * @throws ControlError, GatewayError unavailable, and whatever `request.change` throws
     */
    change: (request: ChangeRequest) => exclusive(ownerOf('change', request), () => write(request)),
    /** The same without the change. @returns what it would be of which version, and the snapshot after it */
    preview: (request: ChangeRequest) =>
      exclusive(ownerOf('change', request), async () => {
        await sync()
        const changes = await judge(request)
        return { version: journal.version, changes, after: withTenants(file(), compiled.tenantsAfter(changes), true) }
      }),
    /** What references stand for may have changed: with the next snapshot they are read again. */
    rereadReferences: compiled.rereadReferences,

    /** undefined: there is no such tenant. */
    killsOf: (tenant: string) => (isKnown(tenant) ? compiled.killsOf(tenant) : undefined),
    /** @throws ControlError, GatewayError unavailable */
    switchKill: (wanted: KillSwitch) => exclusive(ownerOf('kill', wanted), () => kills.set(wanted)),

    /** @param tenants undefined: all. @param before a version number */
    history: (tenants: Iterable<string> | undefined, before: number, limit: number) =>
      exclusive(reading, () => journal.history(before, limit, tenants && [...tenants].flatMap(textNamesOf))),
    isOfFile,
    /**
     * The documents of a version, or that of one tenant; undefined where they are not all kept.
     * @throws GatewayError unavailable
     */
    at: documentsAt,
    /** A tenant as its document of a version makes it; undefined where that is not kept, or cannot be used here. */
    tenantAt: async (version: number, tenant: string) =>
      await compiled.tenantOfDocument(tenant, (await documentsAt(version, tenant))?.get(tenant)),
    /** What those of these tenants that are not there any more had last. @throws GatewayError unavailable */
    removedOf: (tenants: Iterable<string>) =>
      exclusive(reading, async () => {
        await sync()
        return await removedTenants(journal, tenants, compiled.documents)
      }),

    async close(): Promise<void> {
      await stop()
      await closeMutex(unavailable('The gateway is stopping. Retry in a second.'))
      await workerJudge.close()
    }
  }
}
