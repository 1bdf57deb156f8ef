// Sealing: authenticated encryption of what others keep for us, and short proofs that an id is ours. The key lives in the store, so that
// every process on it can read what another one sealed.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Log } from '../observe/log.ts'
import { sealKeyKey } from './keys.ts'
import type { Store } from './port.ts'
import { unavailable } from './rules.ts'

export interface Sealer {
  /** Is the key there? Until then every operation throws GatewayError unavailable. */
  readonly ready: boolean
  /**
   * The same text under the same purpose and binding gives the same seal, so that it can serve as an id.
   * @param binding what the seal is bound to, such as tenant, upstream, principal: another binding cannot open it
   * @param text well-formed Unicode
   * @returns base64url
   */
  seal (purpose: string, binding: readonly string[], text: string): string
  /** @returns undefined for everything that was not sealed so: forged, cut, for another purpose or binding */
  open (purpose: string, binding: readonly string[], sealed: string): string | undefined
  /** 96 bits that only we can make of these parts; base64url, 16 characters. */
  proof (purpose: string, parts: readonly string[]): string
  proves (purpose: string, parts: readonly string[], proof: string): boolean
  close (): void
}

const nonceBytes = 12
const tagBytes = 16
const proofBytes = 12
/** 32 bytes in base64url. */
const wholeKey = /^[A-Za-z0-9_-]{43}$/
const retryMs = 500

interface Keys {
  readonly root: string
  readonly encryption: Buffer
  readonly nonces: Buffer
  readonly proofs: Buffer
}

export interface SealerOptions {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  readonly timer: (ms: number, run: () => void) => { unref (): unknown, close (): unknown }
  readonly log: Log
}

/**
 * Takes the key from the store, or makes it there once for all processes. While the store is away from the start on, or holds something
 * that is no key, every operation throws GatewayError unavailable; the key is fetched as soon as it is there.
 */
export async function createSealer ({ store, randomBytes, timer, log }: SealerOptions): Promise<Sealer> {
  let loaded: Keys | undefined
  let loading = false
  let told = false
  let closed = false
  let retry: { close (): unknown } | undefined

  async function load (): Promise<void> {
    if (loading || closed) return
    loading = true
    retry?.close()
    try {
      // A store that came back empty gets the key that this process has: what was sealed with it stays good.
      await store.set(sealKeyKey, loaded?.root ?? randomBytes(32).toString('base64url'), { when: 'absent' })
      const root = await store.get(sealKeyKey) ?? ''
      if (wholeKey.test(root)) {
        if (root !== loaded?.root) loaded = keysOf(root)
        return
      }
      if (!told) log.error({ key: sealKeyKey }, 'the seal key in the store is damaged: delete it to have a new one made')
      told = true
    } catch (err) {
      log.debug({ err }, 'the seal key cannot be had from the store yet')
    } finally {
      loading = false
    }
    if (closed) return
    const waiting = timer(retryMs, again)
    waiting.unref()
    retry = waiting
  }
  const again = (): void => { void load() }
  store.onLost(again)
  await load()

  const keys = (): Keys => {
    if (loaded === undefined) throw unavailable('The store of the gateway cannot be reached. Retry in a second.')
    return loaded
  }

  return {
    get ready () { return loaded !== undefined },
    seal (purpose, binding, text) {
      const { nonces, encryption } = keys()
      // A nonce made of all that goes in repeats only where everything repeats, and then it says nothing new (as in RFC 5297).
      const nonce = mac(nonces, purpose, [...binding, text]).subarray(0, nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', encryption, nonce).setAAD(Buffer.from(joined(purpose, binding)))
      return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
    },
    open (purpose, binding, sealed) {
      const bytes = Buffer.from(sealed, 'base64url')
      // One seal, one spelling: base64url has characters to spare at the end.
      if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== sealed) return undefined
      const { encryption } = keys()
      try {
        const decipher = createDecipheriv('aes-256-gcm', encryption, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
          .setAAD(Buffer.from(joined(purpose, binding)))
          .setAuthTag(bytes.subarray(-tagBytes))
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]).toString('utf8')
      } catch {
        return undefined // Not ours: the caller is told that the id is unknown.
      }
    },
    proof: (purpose, parts) => proofOf(keys(), purpose, parts),
    proves (purpose, parts, proof) {
      // Compared as text: of several spellings of the same bytes, one is ours.
      const given = Buffer.from(proof)
      const ours = Buffer.from(proofOf(keys(), purpose, parts))
      return given.length === ours.length && timingSafeEqual(given, ours)
    },
    close () {
      closed = true
      retry?.close()
    }
  }
}

function keysOf (root: string): Keys {
  const derive = (use: string): Buffer => Buffer.from(hkdfSync('sha256', Buffer.from(root, 'base64url'), '', `gatehouse ${use}`, 32))
  return { root, encryption: derive('encryption'), nonces: derive('nonces'), proofs: derive('proofs') }
}

// JSON keeps the parts apart: no two lists of parts become one text.
const joined = (purpose: string, parts: readonly string[]): string => JSON.stringify([purpose, ...parts])
const mac = (key: Buffer, purpose: string, parts: readonly string[]): Buffer => createHmac('sha256', key).update(joined(purpose, parts)).digest()
const proofOf = ({ proofs }: Keys, purpose: string, parts: readonly string[]): string => mac(proofs, purpose, parts).subarray(0, proofBytes).toString('base64url')
