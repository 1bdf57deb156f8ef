// Signing in at the identity provider: the browser goes there, and comes back with a code that the gateway exchanges.

import { signal } from '@preact/signals'
import { ProblemError, post, signIn } from './api.js'

const placeKey = 'gatehouse-console-place'

/** Why the last sign-in there came to nothing. */
export const refusedByProvider = signal(/** @type {import('./api.js').Problem | undefined} */ (undefined))

/** Leaves the page. @throws {ProblemError} */
export async function goToProvider() {
  const { url } = await post('/console/login')
  // Only this tab comes back to it.
  sessionStorage.setItem(placeKey, location.hash)
  location.assign(url)
}

/** Whether the browser comes from there; then the address keeps nothing of it. @returns {Promise<boolean>} */
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
