// The routes as an OpenAPI 3.1 document. Schemas of TypeBox are JSON Schema, which OpenAPI 3.1 takes as it is.

import type { TSchema } from 'typebox'
import type { Shape } from '../../config/shape.ts'
import { metricsForms } from '../../observe/metrics/metrics-text.ts'
import { problemTable } from '../problem.ts'
import { maxIdempotencyKey } from '../../control/idempotency.ts'
import { mergePatchType } from '../checks.ts'
import { takesConditions } from '../configuration/conditions.ts'
import { takesIdempotencyKey } from '../configuration/once.ts'
import type { AdminRoute } from '../route.ts'

/** The keywords of schemas that only the gateway's own checks read. */
const ownKeywords = new Set(['patternErrorMessage', 'refused'])

const plain = (schema: TSchema | Shape): unknown =>
  JSON.parse(JSON.stringify(schema, (name, value: unknown) => (ownKeywords.has(name) ? undefined : value)))

const json = (schema: unknown) => ({ 'application/json': { schema } })

/** Metrics are the only text that there is. */
const answer = (response: TSchema) =>
  (response as Shape).type === 'string'
    ? Object.fromEntries(Object.values(metricsForms).map((type) => [type, { schema: plain(response) }]))
    : json(plain(response))

const queryParameters = ({ properties = {}, required = [] }: Shape) =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: plain(schema)
  }))

const problemSchema = {
  type: 'object',
  description: 'RFC 9457. `detail` says what is wrong, `instance` where, `remedy` what to do.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'remedy'],
  properties: {
    type: { type: 'string', enum: Object.keys(problemTable).map((code) => `urn:gatehouse:problem:${code}`) },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    remedy: { type: 'string' },
    errors: {
      type: 'array',
      description: 'Each fault of a body or query, at its path.',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string' }, message: { type: 'string' }, suggestion: { type: 'string' } }
      }
    }
  }
}

const parameterNames = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Such as a UUID: the same request with it gets the answer of the first time, for a day.',
  schema: { type: 'string', minLength: 1, maxLength: maxIdempotencyKey }
}

const header = (name: string, description: string) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' }
})

const conditions = [
  header('If-Match', 'The ETag of the version that is changed; `*`: any. Required (428) where there is one already.'),
  header('If-None-Match', '`*`: only where there is none yet.')
]

const etagHeader = {
  headers: { ETag: { description: 'Of the version, for If-Match.', schema: { type: 'string' } } }
}

/** @param versioned paths of what has versions */
function operation(route: AdminRoute, versioned: ReadonlySet<string>) {
  const { method, path, roles, summary, query, body, response, events, creates } = route
  const etag = (method === 'GET' && versioned.has(path)) || path === '/v1/plan' || takesConditions(route)
  const bodies = body && {
    ...json(plain(body)),
    ...(method === 'PATCH' && { [mergePatchType]: { schema: plain(body) } })
  }
  const streamed =
    events === undefined ? {} : { 'text/event-stream': { schema: { type: 'string', description: events } } }

  const named = parameterNames(path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  return {
    summary,
    description: `Roles: ${roles.join(', ')}.`,
    parameters: [
      ...named,
      ...(query === undefined ? [] : queryParameters(query)),
      ...(takesConditions(route) ? conditions.slice(0, method === 'PUT' ? 2 : 1) : []),
      ...(takesIdempotencyKey(route) ? [idempotencyKey] : [])
    ],
    ...(bodies && { requestBody: { required: true, content: bodies } }),
    responses: {
      ...(response === undefined && events === undefined
        ? { '204': { description: 'Done.' } }
        : {
            '200': {
              description: 'The answer.',
              ...(etag && etagHeader),
              content: { ...(response && answer(response)), ...streamed }
            }
          }),
      ...(creates &&
        response && {
          '201': { description: 'It was made.', ...(etag && etagHeader), content: answer(response) }
        }),
      default: {
        description: 'It is refused.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
      }
    }
  }
}

export function openApiOf(routes: readonly AdminRoute[], version: string): object {
  const paths: Record<string, Record<string, unknown>> = {}
  const versioned = new Set(routes.filter(takesConditions).map(({ path }) => path))
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, versioned) }
  return {
    openapi: '3.1.0',
    info: { title: 'Gatehouse admin API', version },
    security: [{ adminKey: [] }],
    paths,
    components: {
      securitySchemes: { adminKey: { type: 'http', scheme: 'bearer', description: 'An admin key.' } },
      schemas: { Problem: problemSchema }
    }
  }
}
