// How each host is set up for an endpoint: the snippet, the deep link, the command, and what a person has to do.

import type { Static } from 'typebox'
import { choice, closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { hosts, type Connection, type Place } from '../../hosts/hosts.ts'
import { snippetOf } from '../../hosts/snippet.ts'
import { defineRoute, everyRole } from '../route.ts'
import { namedEndpoint, ownListener } from './own-way.ts'

/** Stands where a person puts an API key: the gateway knows digests only. */
const keyPlaceholder = 'YOUR_API_KEY'

const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const HostsAnswer = closedObject({
  url: Type.String({ description: 'URL of the endpoint for hosts.' }),
  with: Type.Enum(['login', 'key'], {
    description: '`login`: hosts sign in by themselves. `key`: they send an API key.'
  }),
  items: Type.Array(
    closedObject({
      host: Type.String({ description: 'Name of the host for `gatehouse connect --host`.' }),
      title: Type.String(),
      path: orNull('Path of its configuration file. null: it has none that could be written.'),
      format: orNull('Format of the file: json, yaml or toml.'),
      snippet: orNull('What goes into the file.'),
      command: orNull('One line for a shell.'),
      link: orNull('Opens the host with everything filled in.'),
      notes: Type.Array(Type.String(), { description: 'What the person has to do or to know.' })
    })
  )
})

export const hostsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/hosts',
    roles: everyRole,
    summary: 'Returns how to set up each host for an endpoint.',
    query: closedObject({
      name: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$',
          description: 'Name of the endpoint in the host. Default: the tenant.'
        })
      ),
      platform: choice(
        ['linux', 'darwin', 'win32'],
        'linux',
        'Operating system of the person, for the paths of files.'
      ),
      with: Type.Optional(
        Type.Enum(['login', 'key'], {
          description: `Default: login where the tenant has one. With key, ${keyPlaceholder} stands for the API key.`
        })
      )
    }),
    response: HostsAnswer
  },
  ({ tenant, params, query }, services): Static<typeof HostsAnswer> => {
    const { path } = namedEndpoint(tenant, params['endpoint'] ?? '')
    const url = `${ownListener(services).publicUrl}${path}`
    const { issuers, mode } = tenant.auth
    const by = query.with ?? (issuers.length > 0 || mode === 'none' ? 'login' : 'key')
    const key = by === 'key' ? keyPlaceholder : undefined
    const connection: Connection = { name: query.name ?? tenant.id, url, key }
    const place: Place = { home: '~', folder: '.', platform: query.platform }
    const items = Object.entries(hosts).map(([host, each]) => {
      const file = each.file?.(connection, place)
      return {
        host,
        title: each.title,
        path: file?.path ?? null,
        format: file?.format ?? null,
        snippet: file === undefined ? null : snippetOf(file),
        command: each.command?.(connection) ?? null,
        link: each.link?.(connection) ?? null,
        notes: [...each.notes(connection)]
      }
    })
    return { url, with: by, items }
  }
)
