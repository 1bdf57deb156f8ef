// The metadata of a provider where people sign in, asked for when it is wanted, and remembered: strangers begin
// sign-ins, and cost the provider nothing.

import type { AuthorizationServer } from 'oauth4webapi'
import { discoverProvider } from '../../auth/provider-metadata.ts'
import type { Fetch } from '../../egress/fetch.ts'
import type { Clock } from '../../time/clock.ts'

const metadataMs = 10 * 60_000
/** The time for which a provider whose metadata could not be had is not asked again. */
const failedMs = 2_000

/** @returns gets the metadata. It throws as `discoverProvider`, and for a while the same error again */
export function rememberedMetadata(
  provider: Parameters<typeof discoverProvider>[0],
  fetch: Fetch,
  clock: Pick<Clock, 'now'>
): () => Promise<AuthorizationServer> {
  let known: { readonly server: AuthorizationServer; readonly at: number } | undefined
  let failed: { readonly error: unknown; readonly at: number } | undefined
  let asked: Promise<AuthorizationServer> | undefined

  async function ask(now: number): Promise<AuthorizationServer> {
    try {
      const server = await discoverProvider(provider, fetch)
      known = { server, at: now }
      return server
    } catch (error) {
      failed = { error, at: clock.now() }
      throw error
    } finally {
      asked = undefined
    }
  }

  return async () => {
    const now = clock.now()
    if (known !== undefined && now >= known.at && now < known.at + metadataMs) return known.server
    if (failed !== undefined && now >= failed.at && now < failed.at + failedMs) throw failed.error
    // Once for all who wait: the provider may hang.
    asked ??= ask(now)
    return await asked
  }
}
