// Sign-in at the identity provider: the browser goes there, and comes back with a code that the gateway exchanges.

import { signal } from '@preact/signals'
import { ProblemError, post, signIn } from './api.js'

const placeKey = 'gatehouse-console-place'

/** Why the last sign-in at the identity provider failed. */
export const refusedByProvider = signal(/** @type {import('./api.js').Problem | undefined} */ (undefined))

/** Leaves the console for the identity provider. @throws {ProblemError} */
export async function goToProvider() {
  const { url } = await post('/console/login')
  // `sessionStorage` belongs to this tab: others do not go to this page when they come back.
  sessionStorage.setItem(placeKey, location.hash)
  location.assign(url)
}

/**
 * Finishes a sign-in if the browser comes from the identity provider, and removes its parameters from the address.
 * @returns {Promise<boolean>} whether it does
 */
export async function comeBack() {
  const query = location.search.slice(1)
  if (!/(?:^|&)state=/.test(query)) return false
  const place = sessionStorage.getItem(placeKey) ?? ''
  sessionStorage.removeItem(placeKey)
  history.replaceState(null, '', `${location.pathname}${place}`)
  dispatchEvent(new HashChangeEvent('hashchange'))
  try {
    await signIn({ query })
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    refusedByProvider.value = error.problem
    return false
  }
  return true
}
