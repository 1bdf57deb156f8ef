// What the relays of both eras use, because it belongs to no caller: one of each for the process.

import type { CatalogCache } from '../catalog/client-catalogs.ts'
import type { Listings } from '../catalog/listings.ts'
import type { LogLevels } from '../connections/log-level.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'

export interface SharedParts {
  readonly listings: Listings
  readonly catalogOf: CatalogCache
  readonly levels: LogLevels
  readonly subscriptions: ResourceSubscriptions
}
