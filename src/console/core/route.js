// The current page and its parameters. They are kept after the # of the address, so that a link leads to them.

import { computed, signal } from '@preact/signals'

const place = signal(location.hash)
addEventListener('hashchange', () => (place.value = location.hash))

/** @returns {{ page: string, params: URLSearchParams }} */
export const route = computed(() => {
  const [page = '', query = ''] = place.value.replace(/^#\/?/, '').split('?', 2)
  return { page: page || 'overview', params: new URLSearchParams(query) }
})

/** The tenant that the page is about; empty: all tenants. */
export const tenant = computed(() => route.value.params.get('tenant') ?? '')

/**
 * A link to a page, about the same tenant.
 * @param {string} page
 * @param {Record<string, string | undefined>} [params]
 */
export function linkTo(page, params = {}) {
  const all = Object.entries({ tenant: tenant.value, ...params })
  const query = new URLSearchParams(all.flatMap(([name, value]) => (value ? [[name, value]] : []))).toString()
  return `#/${page}${query && `?${query}`}`
}

/** @param {string} link */
export const go = (link) => void (location.hash = link)

/** Changes parameters of this page, without a history entry. @param {Record<string, string | undefined>} changed */
export function setParams(changed) {
  const { page, params } = route.value
  history.replaceState(null, '', linkTo(page, { ...Object.fromEntries(params), ...changed }))
  place.value = location.hash
}
