// The pages in the order of the list, and the roles that see them. The gateway checks each request itself, so hiding a
// page here is no protection.

import { text } from './text.js'

/**
 * @typedef {{
 *   name: string, title: string,
 *   load: () => Promise<{ Page: import('preact').ComponentType<any> }>,
 *   roles?: readonly string[],
 *   isOfTenant?: boolean
 * }} PageEntry isOfTenant: whether the page is about one tenant, which must be chosen
 */

/** @type {readonly PageEntry[]} */
export const pages = [
  { name: 'overview', title: text.pages.overview, load: () => import('./pages/overview.js') },
  { name: 'live', title: text.pages.live, load: () => import('./pages/live.js') },
  { name: 'upstreams', title: text.pages.upstreams, load: () => import('./pages/upstreams.js'), isOfTenant: true },
  { name: 'tenants', title: text.pages.tenants, load: () => import('./pages/tenants.js') },
  { name: 'people', title: text.pages.people, load: () => import('./pages/people.js'), isOfTenant: true },
  { name: 'catalog', title: text.pages.catalog, load: () => import('./pages/catalog.js'), isOfTenant: true },
  { name: 'policy', title: text.pages.policy, load: () => import('./pages/policy.js'), isOfTenant: true },
  {
    name: 'audit',
    title: text.pages.audit,
    load: () => import('./pages/audit.js'),
    roles: ['platform-admin', 'tenant-admin', 'auditor'],
    isOfTenant: true
  },
  { name: 'connect', title: text.pages.connect, load: () => import('./pages/connect.js'), isOfTenant: true }
]
