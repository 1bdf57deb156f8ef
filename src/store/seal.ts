// Sealing: authenticated encryption of what clients keep for the gateway, and short proofs that the gateway made an id.
// The key lives in the store, so that every process on it can open what another one sealed.

import {
  type KeyObject,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  timingSafeEqual
} from 'node:crypto'
import type { Log } from '../observe/log.ts'
import { sealKeyKey } from './keys.ts'
import { type Store, unavailable } from './port.ts'

export interface Sealer {
  /** Whether the key is loaded. Until then every operation throws GatewayError unavailable. */
  readonly ready: boolean
  /**
   * The same text under the same purpose and binding gives the same seal, so that it can serve as an id.
   * @param binding what the seal is bound to, such as tenant, upstream, principal: another binding cannot open it
   * @param text well-formed Unicode
   * @returns base64url
   */
  seal(purpose: string, binding: readonly string[], text: string): string
  /** @returns undefined for what was not sealed so: forged, cut, for another purpose or binding */
  open(purpose: string, binding: readonly string[], sealed: string): string | undefined
  /**
   * The proofs of as many numbers in a row, which cost little more than one: 96 bits each that only the gateway can
   * make of these parts and the number.
   * @returns of a number: its proof, base64url, 16 characters
   */
  proofs(purpose: string, parts: readonly string[]): (number: number) => string
  proves(purpose: string, parts: readonly string[], number: number, proof: string): boolean
  close(): void
}

const nonceBytes = 12
const tagBytes = 16
const proofBytes = 12
/** In base64url. */
const proofChars = 16
/** Proofs that are made at once: as many as the stream of most calls has events. */
const proofsInBlock = 16
/** 32 bytes in base64url. */
const wholeKey = /^[A-Za-z0-9_-]{43}$/
const retryMs = 500
/** A store that is emptied while connections to it hold (FLUSHALL) may get another key from a process that starts. */
const checkMs = 2_500

interface Keys {
  readonly root: string
  readonly encryption: KeyObject
  readonly nonces: KeyObject
  readonly proofs: KeyObject
}

/**
 * Takes the key from the store, or makes it there once for all processes. While the store is away from the start on, or
 * holds something that is no key, every operation throws GatewayError unavailable; the key is fetched as soon as it is
 * there. It is compared now and then, so that processes agree on it again after the store was emptied.
 */
export async function createSealer({
  store,
  randomBytes,
  timer,
  log
}: {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  readonly timer: (ms: number, run: () => void) => { unref(): unknown; close(): unknown }
  readonly log: Log
}): Promise<Sealer> {
  let loaded: Keys | undefined
  let loading = false
  let reported = false
  let closed = false
  let retry: { close(): unknown } | undefined

  async function load(): Promise<void> {
    if (loading || closed) return
    loading = true
    retry?.close()
    let waitMs = retryMs
    try {
      let root = await store.get(sealKeyKey)
      if (root === undefined) {
        // A store that is empty again gets the key of this process: what was sealed with it stays good.
        await store.set(sealKeyKey, loaded?.root ?? randomBytes(32).toString('base64url'), { when: 'absent' })
        root = (await store.get(sealKeyKey)) ?? ''
      }
      if (wholeKey.test(root)) {
        if (loaded !== undefined && root !== loaded.root)
          log.warn({ storeKey: sealKeyKey }, 'the store has another seal key now: what was sealed before is unknown')
        if (root !== loaded?.root) loaded = keysOf(root)
        waitMs = checkMs
        return
      }
      if (!reported)
        log.error({ storeKey: sealKeyKey }, 'the seal key in the store is damaged: delete it to have a new one made')
      reported = true
    } catch (err) {
      log.debug({ err }, 'the seal key cannot be had from the store yet')
    } finally {
      loading = false
      if (!closed) {
        const waiting = timer(waitMs, again)
        waiting.unref()
        retry = waiting
      }
    }
  }
  const again = (): void => {
    void load()
  }
  store.onLost(again)
  await load()

  const keys = (): Keys => {
    if (loaded === undefined) throw unavailable('The store of the gateway cannot be reached. Retry in a second.')
    return loaded
  }

  return {
    get ready() {
      return loaded !== undefined
    },
    seal(purpose, binding, text) {
      const { nonces, encryption } = keys()
      // A nonce derived from all inputs repeats only where all of them do, which reveals nothing new (as in RFC 5297).
      const nonce = mac(nonces, purpose, [...binding, text]).subarray(0, nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', encryption, nonce).setAAD(Buffer.from(joined(purpose, binding)))
      return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
        'base64url'
      )
    },
    open(purpose, binding, sealed) {
      const bytes = Buffer.from(sealed, 'base64url')
      // Each seal has one spelling: the last character of base64url has unused bits.
      if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== sealed) return undefined
      const { encryption } = keys()
      try {
        const decipher = createDecipheriv('aes-256-gcm', encryption, bytes.subarray(0, nonceBytes), {
          authTagLength: tagBytes
        })
          .setAAD(Buffer.from(joined(purpose, binding)))
          .setAuthTag(bytes.subarray(-tagBytes))
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]).toString(
          'utf8'
        )
      } catch {
        return undefined // Not made by the gateway: the caller is told that the id is unknown.
      }
    },
    proofs(purpose, parts) {
      let block = -1
      let made = ''
      let by: Keys | undefined
      return (number) => {
        if (blockOf(number) !== block || by !== loaded) {
          by = keys()
          block = blockOf(number)
          made = proofBlock(by, purpose, parts, block)
        }
        return proofIn(made, number)
      }
    },
    proves(purpose, parts, number, proof) {
      // Compared as text: of several spellings of the same bytes only one counts.
      const given = Buffer.from(proof)
      const ours = Buffer.from(proofIn(proofBlock(keys(), purpose, parts, blockOf(number)), number))
      return given.length === ours.length && timingSafeEqual(given, ours)
    },
    close() {
      closed = true
      retry?.close()
    }
  }
}

function keysOf(root: string): Keys {
  // As key objects: node prepares a key given as bytes anew for every operation, which takes longer than the operation.
  const derive = (use: string): KeyObject =>
    createSecretKey(Buffer.from(hkdfSync('sha256', Buffer.from(root, 'base64url'), '', `gatehouse ${use}`, 32)))
  return { root, encryption: derive('encryption'), nonces: derive('nonces'), proofs: derive('proofs') }
}

// JSON keeps the parts apart: no two lists of parts become one text.
const joined = (purpose: string, parts: readonly string[]): string => JSON.stringify([purpose, ...parts])
const mac = (key: KeyObject, purpose: string, parts: readonly string[]): Buffer =>
  createHmac('sha256', key).update(joined(purpose, parts)).digest()
const blockOf = (number: number): number => Math.floor(number / proofsInBlock)
/** The proofs of the numbers of one block, one after the other (HKDF, RFC 5869). */
const proofBlock = ({ proofs }: Keys, purpose: string, parts: readonly string[], block: number): string =>
  Buffer.from(
    hkdfSync('sha256', proofs, '', joined(purpose, [...parts, String(block)]), proofBytes * proofsInBlock)
  ).toString('base64url')
const proofIn = (block: string, number: number): string => {
  const from = (number % proofsInBlock) * proofChars
  return block.slice(from, from + proofChars)
}
