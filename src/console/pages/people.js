// Who uses a tenant: sessions, what people have connected, and what is stopped. Whatever ends something says first what
// it hits.

import { useSignal } from '@preact/signals'
import { list, path, post, request } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { tenant } from '../core/route.js'
import { ConfirmDialog } from '../parts/confirm.js'
import { Empty, Loading } from '../parts/notice.js'
import { Table } from '../parts/table.js'
import { ago, dateTime } from '../parts/time.js'
import { text } from '../text.js'
import { Kills } from './people/kills.js'
import { mayChange } from './upstreams.js'

const said = text.people

export function Page() {
  const of = (what) => path`/v1/tenants/${tenant.value}/` + what
  const sessions = useLoaded((signal) => list(of('sessions'), signal), [], { everyMs: 10_000 })
  const connections = useLoaded((signal) => list(of('connections'), signal), [])
  return html`<${Sessions} sessions=${sessions} />
    <${Connections} connections=${connections} />
    <${Kills} sessions=${sessions} />`
}

function Sessions({ sessions }) {
  const chosen = useSignal(/** @type {any} */ (undefined))
  const end = ({ id }) =>
    request(path`/v1/tenants/${tenant.value}/sessions/${id}`, { method: 'DELETE' }).then(sessions.again)
  return html`<div class="part">
    <h2>${said.sessions}</h2>
    <${Loading} loaded=${sessions}>
      ${({ items, isWhole }) =>
        items.length === 0
          ? html`<${Empty} title=${said.noSessions} why=${said.noSessionsWhy} />`
          : html`<${Table}
              caption=${said.sessions}
              rows=${items}
              isWhole=${isWhole}
              keyOf=${({ id }) => id}
              textOf=${({ subject, endpoint, software, client }) => [subject, endpoint, software, client].join(' ')}
              columns=${[
                { title: said.person, isHead: true, cell: ({ subject }) => subject },
                { title: said.endpoint, cell: ({ endpoint }) => endpoint },
                { title: said.software, cell: ({ software }) => software ?? text.none },
                { title: said.revision, cell: ({ revision }) => revision },
                {
                  title: said.opened,
                  cell: ({ openedAt }) =>
                    html`<time datetime=${openedAt} title=${dateTime(openedAt)}>${ago(openedAt)}</time>`
                },
                {
                  title: said.used,
                  cell: ({ lastUsedAt }) =>
                    html`<time datetime=${lastUsedAt} title=${dateTime(lastUsedAt)}>${ago(lastUsedAt)}</time>`
                },
                ...(mayChange()
                  ? [
                      {
                        title: said.action,
                        cell: (each) =>
                          html`<button
                            type="button"
                            aria-label=${`${said.end}: ${each.subject}`}
                            onClick=${() => (chosen.value = each)}
                          >
                            ${said.end}
                          </button>`
                      }
                    ]
                  : [])
              ]}
            />`}
    <//>
    ${
      chosen.value &&
      html`<${ConfirmDialog}
        title=${said.endTitle(chosen.value.subject)}
        label=${said.end}
        done=${said.ended}
        act=${() => end(chosen.value)}
        onClose=${() => (chosen.value = undefined)}
      >
        <p>${said.endWhy(chosen.value.endpoint)}</p>
      <//>`
    }
  </div>`
}

const stateMarks = { connected: 'good', 'not in use': '' }

function Connections({ connections }) {
  const chosen = useSignal(/** @type {any} */ (undefined))
  const revoke = ({ issuer, subject, upstream }) =>
    post(path`/v1/tenants/${tenant.value}/connections/revoke`, { issuer, subject, upstream }).then(connections.again)
  return html`<div class="part">
    <h2>${said.connections}</h2>
    <${Loading} loaded=${connections}>
      ${({ items, isWhole }) =>
        items.length === 0
          ? html`<${Empty} title=${said.noConnections} why=${said.noConnectionsWhy} />`
          : html`<${Table}
              caption=${said.connections}
              rows=${items}
              isWhole=${isWhole}
              keyOf=${({ issuer, subject, upstream }) => [issuer, subject, upstream].join(' ')}
              textOf=${({ subject, upstream, state }) => [subject, upstream, state].join(' ')}
              columns=${[
                { title: said.person, isHead: true, cell: ({ subject }) => subject },
                { title: said.upstream, cell: ({ upstream }) => upstream },
                { title: said.kind, cell: ({ kind }) => said.kinds[kind] },
                {
                  title: said.state,
                  cell: ({ state, reason }) =>
                    html`<span class=${`mark ${stateMarks[state] ?? 'warn'}`}>${state}</span> ${reason}`
                },
                { title: said.since, cell: ({ connectedAt }) => (connectedAt ? ago(connectedAt) : text.none) },
                ...(mayChange()
                  ? [
                      {
                        title: said.action,
                        cell: (each) =>
                          html`<button
                            type="button"
                            aria-label=${`${said.revoke}: ${each.subject}, ${each.upstream}`}
                            onClick=${() => (chosen.value = each)}
                          >
                            ${said.revoke}
                          </button>`
                      }
                    ]
                  : [])
              ]}
            />`}
    <//>
    ${
      chosen.value &&
      html`<${ConfirmDialog}
        title=${said.revokeTitle(chosen.value.subject, chosen.value.upstream)}
        label=${said.revoke}
        done=${said.revoked}
        act=${() => revoke(chosen.value)}
        onClose=${() => (chosen.value = undefined)}
      >
        <p>${said.revokeWhy}</p>
      <//>`
    }
  </div>`
}
