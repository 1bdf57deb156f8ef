// The sessions of a tenant, its callers of today, the accounts that people have connected, and the kill switches. Every
// action that ends something says first what it affects.

import { useSignal } from '@preact/signals'
import { path, post, request } from '../core/api.js'
import { html } from '../core/html.js'
import { useList } from '../core/load.js'
import { tenant } from '../core/route.js'
import { ConfirmDialog } from '../parts/confirm.js'
import { actionOf, ListPart } from '../parts/list.js'
import { Moment } from '../parts/moment.js'
import { text } from '../text.js'
import { Kills } from './people/kills.js'
import { mayChange } from './upstreams.js'

const said = text.people

export function Page() {
  const of = (what) => path`/v1/tenants/${tenant.value}/` + what
  const sessions = useList(of('sessions'), [], { everyMs: 10_000 })
  const connections = useList(of('connections'))
  const seen = useList(of('principals'), [], { everyMs: 10_000 })
  return html`<${Sessions} sessions=${sessions} />
    <${Seen} seen=${seen} />
    <${Connections} connections=${connections} />
    <${Kills} onChange=${sessions.again} />`
}

function Sessions({ sessions }) {
  const chosen = useSignal(/** @type {any} */ (undefined))
  const end = ({ id }) =>
    request(path`/v1/tenants/${tenant.value}/sessions/${id}`, { method: 'DELETE' }).then(sessions.again)
  return html`<${ListPart}
    title=${said.sessions}
    loaded=${sessions}
    empty=${{ title: said.noSessions, why: said.noSessionsWhy }}
    keyOf=${({ id }) => id}
    textOf=${({ subject, endpoint, software, client }) => [subject, endpoint, software, client].join(' ')}
    columns=${[
      { title: said.person, isHead: true, cell: ({ subject }) => subject },
      { title: said.endpoint, cell: ({ endpoint }) => endpoint },
      { title: said.software, cell: ({ software, client }) => software ?? client },
      { title: said.revision, cell: ({ revision }) => revision },
      { title: said.opened, cell: ({ openedAt }) => html`<${Moment} at=${openedAt} />` },
      { title: said.used, cell: ({ lastUsedAt }) => html`<${Moment} at=${lastUsedAt} />` },
      ...actionOf({
        label: said.end,
        nameOf: ({ subject }) => subject,
        isAllowed: mayChange(),
        onChoose: (each) => (chosen.value = each)
      })
    ]}
  >
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
  <//>`
}

/** The callers of today, including those without a session: 2026-07-28 has none. */
const Seen = ({ seen }) =>
  html`<${ListPart}
    title=${said.seen}
    loaded=${seen}
    empty=${{ title: said.noneSeen, why: said.noneSeenWhy }}
    keyOf=${({ kind, issuer, subject, client }) => [kind, issuer, subject, client].join(' ')}
    textOf=${({ subject, client, software, groups }) => [subject, client, software, ...groups].join(' ')}
    columns=${[
      { title: said.person, isHead: true, cell: ({ subject }) => subject },
      { title: said.letInBy, cell: ({ kind }) => said.kindsOfCaller[kind] },
      { title: said.software, cell: ({ software, client }) => software ?? client },
      { title: said.groups, cell: ({ groups }) => groups.join(', ') || text.none },
      { title: said.calls, isNumber: true, cell: ({ calls }) => text.amount(calls) },
      { title: said.last, cell: ({ lastSeenAt }) => html`<${Moment} at=${lastSeenAt} />` }
    ]}
  />`

const stateMarks = { connected: 'good', 'not in use': '' }

function Connections({ connections }) {
  const chosen = useSignal(/** @type {any} */ (undefined))
  const revoke = ({ issuer, subject, upstream }) =>
    post(path`/v1/tenants/${tenant.value}/connections/revoke`, { issuer, subject, upstream }).then(connections.again)
  return html`<${ListPart}
    title=${said.connections}
    loaded=${connections}
    empty=${{ title: said.noConnections, why: said.noConnectionsWhy }}
    keyOf=${({ issuer, subject, upstream }) => [issuer, subject, upstream].join(' ')}
    textOf=${({ subject, upstream, state }) => [subject, upstream, said.states[state]].join(' ')}
    columns=${[
      { title: said.person, isHead: true, cell: ({ subject }) => subject },
      { title: said.upstream, cell: ({ upstream }) => upstream },
      { title: said.kind, cell: ({ kind }) => said.kinds[kind] },
      {
        title: said.state,
        cell: ({ state, reason }) =>
          html`<span class=${`mark ${stateMarks[state] ?? 'warn'}`}>${said.states[state]}</span> ${reason}`
      },
      { title: said.since, cell: ({ connectedAt: at }) => (at ? html`<${Moment} at=${at} />` : text.none) },
      ...actionOf({
        label: said.revoke,
        nameOf: ({ subject, upstream }) => `${subject}, ${upstream}`,
        isAllowed: mayChange(),
        onChoose: (each) => (chosen.value = each)
      })
    ]}
  >
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
  <//>`
}
