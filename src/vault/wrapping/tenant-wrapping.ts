// Wraps and unwraps the keys of tenants with the wrapping keys of the present configuration.

import type { Snapshot, VaultKey } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import { KeyServiceAway, wrappedBy, type WrappingKey, wrappingKeyOf } from './wrapping-key.ts'

/** The key of a tenant cannot be opened, so that no value of the tenant can be. */
export class UnopenedKeyError extends GatewayError {}

/** Whether the key service is only unreachable, so that keys unwrapped earlier may be used on. */
export const isServiceAway = (error: unknown): boolean =>
  error instanceof UnopenedKeyError && error.cause instanceof KeyServiceAway

export function createTenantWrapping(snapshot: () => Pick<Snapshot, 'vault'>, log: Log) {
  const wrappingKeys = new WeakMap<VaultKey, WrappingKey>()

  /** Returns the wrapping key of each key of a configuration, one object each: that of a service keeps a client. */
  function wrappingKey(key: VaultKey): WrappingKey {
    const made = wrappingKeys.get(key) ?? wrappingKeyOf(key)
    wrappingKeys.set(key, made)
    return made
  }

  /** @throws GatewayError unavailable where the configuration names no keys */
  function firstKey(): WrappingKey {
    const [first] = snapshot().vault?.keys ?? []
    if (first === undefined)
      throw new GatewayError('unavailable', 'This gateway keeps no accounts of people: it has no keys for them.')
    return wrappingKey(first)
  }

  async function wrapped(key: Uint8Array, tenant: TenantId): Promise<string> {
    const first = firstKey()
    return await first.wrap(key, tenant).catch((error: unknown) => failed(tenant, first.id, 'wrap', error))
  }

  async function unwrapped(text: string, tenant: TenantId): Promise<Uint8Array> {
    const id = wrappedBy(text)
    const found = keyCalled(id)
    if (found === undefined) {
      log.error({ tenant, kid: id }, `the key of a tenant is sealed with the key ${id} of the vault, not configured`)
      throw new UnopenedKeyError('unavailable', `The vault is sealed with the key ${id}, which is not configured.`)
    }
    const key = await wrappingKey(found)
      .unwrap(text, tenant)
      .catch((error: unknown) => failed(tenant, id, 'open', error))
    if (key.length !== 32) return failed(tenant, id, 'open', new Error('it has the wrong length'))
    return key
  }

  /** @throws GatewayError unavailable: callers are not told where a service is, nor what it said */
  function failed(tenant: TenantId, id: string, what: 'wrap' | 'open', err: unknown): never {
    log.error({ err, tenant, kid: id }, `the key ${id} of the vault cannot ${what} the key of a tenant`)
    throw new UnopenedKeyError(
      'unavailable',
      `The key ${id} of the vault cannot ${what} the key of this tenant: ${id} is another one than when it was ` +
        'sealed (the same id, another value), or cannot be reached, or the key of the tenant is damaged. Those who ' +
        'run this gateway find the reason in its log.',
      { cause: err, headers: { 'Retry-After': '5' } }
    )
  }

  const keyCalled = (id: string): VaultKey | undefined => snapshot().vault?.keys.find((key) => key.id === id)

  /** The text of each key: of a configuration that was read again, each key is another object. */
  const texts = new WeakMap<VaultKey, string>()
  function textOf(key: VaultKey | undefined): string | undefined {
    if (key === undefined) return undefined
    const text = texts.get(key) ?? JSON.stringify(key)
    texts.set(key, text)
    return text
  }

  return {
    /** Returns the id of the key that wraps. @throws GatewayError unavailable where the configuration names none */
    firstId: (): string => firstKey().id,
    wrapped,
    unwrapped,
    /** The configured key that can unwrap a text, as text; undefined: there is none. */
    openerOf: (text: string): string | undefined => textOf(keyCalled(wrappedBy(text)))
  }
}
