// Every route of the admin API.

import { Type } from '../config/schema/type.ts'
import { administratorRoute } from './administrator.ts'
import { callLimitRoutes } from './configuration/call-limits.ts'
import { documentRoutes } from './configuration/documents.ts'
import { issuerRoutes } from './configuration/issuers.ts'
import { keyRoutes } from './configuration/keys.ts'
import { killRoutes } from './configuration/stopping/kills.ts'
import { planRoutes } from './configuration/plan.ts'
import { policyRoutes } from './configuration/policies.ts'
import { policyTestsRoute } from './configuration/policy-tests.ts'
import { ruleEffectsRoute } from './configuration/rule-effects.ts'
import { versionRoutes } from './configuration/versions.ts'
import { catalogRoutes } from './clients/catalog.ts'
import { momentsRoute } from './clients/past-catalogs.ts'
import { doctorRoute } from './clients/doctor.ts'
import { hostsRoute } from './clients/hosts.ts'
import { tryRoute } from './clients/try.ts'
import { upstreamToolsRoute } from './clients/upstream-tools.ts'
import { endpointRoutes } from './endpoints.ts'
import { metricsRoute } from './metrics.ts'
import { questionRoutes } from './clients/questions.ts'
import { defineRoute, everyRole, type AdminRoute } from './route.ts'
import { auditRoutes } from './audit/audit-routes.ts'
import { liveRoutes } from './live/routes.ts'
import { discoverRoute } from './discovery/discover-route.ts'
import { reconnectRoute } from './live/reconnect.ts'
import { stderrRoute } from './live/standard-error.ts'
import { processesRoute } from './live/process-routes.ts'
import { problemRoute } from './live/problem-routes.ts'
import { seriesRoutes } from './series/series-routes.ts'
import { usageRoute } from './live/usage-routes.ts'
import { connectionRoutes } from './live/connections.ts'
import { principalsRoute } from './callers/principals.ts'
import { sessionRoutes } from './live/sessions.ts'
import { configurationRoutes } from './tenants.ts'
import { upstreamRoutes } from './upstreams.ts'

export const adminRoutes: readonly AdminRoute[] = [
  defineRoute(
    {
      method: 'GET',
      path: '/openapi.json',
      roles: everyRole,
      summary: 'Returns this API as an OpenAPI 3.1 document.',
      response: Type.Object({}, { description: 'OpenAPI 3.1.' })
    },
    ({ openApi }) => openApi
  ),
  administratorRoute,
  metricsRoute,
  ...configurationRoutes,
  ...endpointRoutes,
  ...upstreamRoutes,
  stderrRoute,
  upstreamToolsRoute,
  ...issuerRoutes,
  ...callLimitRoutes,
  ...policyRoutes,
  ruleEffectsRoute,
  policyTestsRoute,
  ...documentRoutes,
  ...keyRoutes,
  ...versionRoutes,
  ...planRoutes,
  ...killRoutes,
  ...catalogRoutes,
  momentsRoute,
  ...questionRoutes,
  tryRoute,
  doctorRoute,
  hostsRoute,
  ...sessionRoutes,
  principalsRoute,
  ...connectionRoutes,
  ...liveRoutes,
  ...auditRoutes,
  usageRoute,
  ...seriesRoutes,
  problemRoute,
  processesRoute,
  reconnectRoute,
  discoverRoute
]
