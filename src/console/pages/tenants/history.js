// The changes of a tenant, with who made them and when; compares two versions, and restores an earlier one.

import { useSignal } from '@preact/signals'
import { administrator, get, path } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useList, useLoaded } from '../../core/load.js'
import { actionOf, ListPart } from '../../parts/list.js'
import { Choice } from '../../parts/choice.js'
import { Dialog } from '../../parts/dialog.js'
import { Difference } from '../../parts/difference.js'
import { Loading } from '../../parts/notice.js'
import { Moment } from '../../parts/moment.js'
import { RollbackDialog } from '../../parts/plan.js'
import { dateTime } from '../../parts/time.js'
import { text } from '../../text.js'
import { mayChange } from '../upstreams.js'

const said = text.history
const perPage = 20

export const useVersions = (id) => useList(path`/v1/versions?tenant=${id}`, [], { perPage })

/**
 * @param {{
 *   id: string, versions: ReturnType<typeof useVersions>, version: number | null | undefined, onChange: () => unknown
 * }} props version: the current one
 */
export function History({ id, versions, version, onChange }) {
  const chosen = useSignal(/** @type {any} */ (undefined))
  const compared = useSignal(/** @type {number | undefined} */ (undefined))
  // Versions count the changes of all tenants, so only a role that may change all tenants may restore one.
  const mayRollBack = administrator.value?.role === 'platform-admin'
  const close = (isDone) => {
    chosen.value = undefined
    if (isDone) void onChange()
  }
  return html`<${ListPart}
    title=${said.title}
    loaded=${versions}
    empty=${{ title: said.none, why: said.noneWhy }}
    end=${said.end}
    keyOf=${(each) => String(each.version)}
    columns=${[
      { title: said.version, isHead: true, cell: (each) => each.version },
      { title: said.when, cell: ({ at }) => html`<${Moment} at=${at} />` },
      { title: said.who, cell: ({ actor, role }) => `${actor} (${role})` },
      { title: said.what, cell: ({ action }) => html`<code>${action}</code>` },
      ...actionOf({
        label: said.compare,
        nameOf: (each) => each.version,
        isAllowed: mayChange(),
        onChoose: (each) => (compared.value = each.version)
      }),
      ...actionOf({
        label: said.back,
        nameOf: (each) => each.version,
        isAllowed: mayRollBack,
        isFor: (each) => each.version !== version,
        onChoose: (each) => (chosen.value = each)
      })
    ]}
  >
    ${
      compared.value !== undefined &&
      html`<${CompareDialog}
        id=${id}
        first=${compared.value}
        versions=${(versions.value?.items ?? []).map((each) => String(each.version))}
        onClose=${() => (compared.value = undefined)}
      />`
    }
    ${
      chosen.value &&
      html`<${RollbackDialog}
        version=${chosen.value.version}
        tenant=${id}
        title=${said.backTo(chosen.value.version)}
        label=${said.back}
        done=${said.done(chosen.value.version)}
        onClose=${close}
      >
        <p>${said.backWhy(id, dateTime(chosen.value.at))}</p>
      <//>`
    }
  <//>`
}

function CompareDialog({ id, first, versions, onClose }) {
  const from = useSignal(String(first))
  const to = useSignal(versions[0])
  const target = (version) => path`/v1/tenants/${id}/versions/${version}`
  const both = useLoaded(
    (signal) => Promise.all([from.value, to.value].map((version) => get(target(version), signal))),
    [from.value, to.value]
  )
  const choice = (label, value) =>
    html`<${Choice}
      label=${label}
      value=${value.value}
      choices=${versions.map((each) => [each, each])}
      onChange=${(each) => (value.value = each)}
    />`
  return html`<${Dialog} title=${said.compareTitle(id)} onClose=${onClose} isWide>
    <div class="row">${choice(said.from, from)} ${choice(said.to, to)}</div>
    <${Loading} loaded=${both}>
      ${([one, other]) =>
        html`<${Difference}
          from=${one.configuration}
          to=${other.configuration}
          names=${[said.versionOf(one.version), said.versionOf(other.version)]}
        />`}
    <//>
  <//>`
}
