// The addresses of names that nobody who runs the gateway wrote. They are asked of DNS, never of the system: its lookup
// takes one of few threads for as long as a name server likes, and whoever names a slow one would keep everybody
// waiting who looks up a name. A slow name takes one of its owner's places, for seconds.

import { type LookupAddress, lookup, promises } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import { createQuota, createSemaphore, type Semaphore } from '../limits/limits.ts'
import { abortable, type Clock, deadline, settledWithin, steadyClock } from '../time/clock.ts'

/** For a place and the addresses together: sooner than the request that waits for them gives up. */
const deadlineMs = 4_000
/** Each further question waits twice as long. */
const firstAnswerMs = 1_000
const questions = 3
/** Once addresses of IPv4 are there, those of IPv6 are waited for so long (RFC 8305 section 3). */
const laterIPv6Ms = 50
/**
 * The other way round so long, that a lost question is asked again: the connection that is made has no second try, and
 * many machines reach nothing by IPv6.
 */
const laterIPv4Ms = 1_500
/** Lookups of one owner at once; the owner's others wait. Each takes a socket. */
const ownerAtOnce = 4
const ownerWaiting = 96
const processAtOnce = 64
/** The most of the few threads that the system looks up names with; the others are for names that operators wrote. */
const systemAtOnce = 1

interface GuardedNamesOptions {
  /**
   * Names without a dot are known, too, beside those of the hosts file: the system completes them by its search
   * domains, and nobody outside can make them slow.
   */
  readonly local?: boolean
  /** Default: those of the system. */
  readonly servers?: readonly string[] | undefined
  readonly hostsFile?: string
  readonly clock?: Clock
}

/**
 * @param owner who is answerable for the name: names of one owner are counted together
 * @returns its addresses, of both families
 * @throws Error where there is none, and for too many or too slow names of the owner
 */
export type ResolveName = (name: string, owner: string) => Promise<readonly LookupAddress[]>

export function createGuardedNames({
  local = false,
  servers,
  hostsFile = process.platform === 'win32' ? 'C:\\Windows\\System32\\drivers\\etc\\hosts' : '/etc/hosts',
  clock = steadyClock
}: GuardedNamesOptions = {}): ResolveName {
  const places = createQuota()
  const semaphores = new Map<string, Semaphore>()

  async function find(name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    const bare = name.replace(/\.$/, '').toLowerCase()
    const written = await fromHosts(bare, hostsFile)
    if (written.length > 0) return written
    if (bare.includes('.') && !bare.endsWith('.localhost')) return await askDns(name, { servers, clock, signal })
    // Nobody outside has a name without a dot (RFC 7085 section 3).
    if (!local) return []
    return await abortable(
      systemTurn(() => systemLookup(name, { all: true }), signal),
      signal,
      () => tooSlow(name)
    )
  }

  async function inPlace(name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    if (signal.aborted) throw tooSlow(name)
    const giveBack = places.take(1, [['', processAtOnce]])
    if (giveBack === undefined)
      throw new Error(`${name} is not looked up: the gateway does so for ${processAtOnce} names`)
    try {
      return await find(name, signal)
    } finally {
      giveBack()
    }
  }

  /** One question is answered to all who ask it meanwhile: a thousand sockets to one server ask once. */
  const underWay = new Map<string, ReturnType<ResolveName>>()

  async function ask(name: string, owner: string): Promise<readonly LookupAddress[]> {
    const key = `of ${owner}`
    const giveBack = places.take(1, [[key, ownerAtOnce + ownerWaiting]])
    if (giveBack === undefined)
      throw new Error(
        `${name} is not looked up: ${ownerAtOnce + ownerWaiting} names ${owner === '' ? '' : `of ${owner} `}are already`
      )
    const semaphore = semaphores.get(key) ?? createSemaphore(ownerAtOnce)
    semaphores.set(key, semaphore)
    const limit = deadline(clock, deadlineMs, undefined)
    try {
      return await semaphore(() => inPlace(name, limit.signal), limit.signal)
    } catch (error) {
      throw limit.passed() ? tooSlow(name) : error
    } finally {
      limit.close()
      giveBack()
      if (places.amountOf(key) === 0) semaphores.delete(key)
    }
  }

  return (name, owner) => {
    const key = JSON.stringify([owner, name])
    const asked = underWay.get(key) ?? ask(name, owner).finally(() => underWay.delete(key))
    underWay.set(key, asked)
    return asked
  }
}

const systemLookup = promisify(lookup)
/** Of the process: each guard has names of its own, and all have the same threads. */
const systemTurn = createSemaphore(systemAtOnce)

const tooSlow = (name: string): Error =>
  new Error(
    `${name} has no address within ${deadlineMs / 1000} s: its name server is slow, or other names of its owner are`
  )

interface Question {
  readonly servers: readonly string[] | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Asks DNS for both families at once, with sockets of its own, so that it can be given up without the others. */
async function askDns(name: string, { servers, clock, signal }: Question): Promise<readonly LookupAddress[]> {
  const resolver = new promises.Resolver({ timeout: firstAnswerMs, tries: questions })
  if (servers !== undefined) resolver.setServers(servers)
  const give = (): void => resolver.cancel()
  signal.addEventListener('abort', give, { once: true })
  const found: LookupAddress[] = []
  const keep = (family: number) => (addresses: string[]) =>
    void found.push(...addresses.map((address) => ({ address, family })))
  const [four, six] = [resolver.resolve4(name).then(keep(4)), resolver.resolve6(name).then(keep(6))]
  await Promise.any([
    four.then(() => settledWithin(clock, laterIPv6Ms, six)),
    six.then(() => settledWithin(clock, laterIPv4Ms, four))
  ]).catch(() => {
    // There are none.
  })
  signal.removeEventListener('abort', give)
  give()
  if (found.length === 0) await four
  return found.toSorted((one, other) => one.family - other.family)
}

/** hosts(5): an address, then its names; what follows a # says nothing. */
async function fromHosts(name: string, file: string): Promise<readonly LookupAddress[]> {
  // A machine without one has no names in it.
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    return family !== 0 && names.some((each) => each.toLowerCase() === name) ? [{ address, family }] : []
  })
}
