// The catalog of an endpoint, as a chosen caller sees it in a chosen revision; compares the catalogs of two callers,
// revisions or moments; shows one entry, and lets the user try a tool.

import { useSignal } from '@preact/signals'
import { administrator, get, path, post } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { route, setParams, tenant } from '../core/route.js'
import { anybody, CallerFields, Choice, WithEndpoint } from '../parts/choice.js'
import { Dialog } from '../parts/dialog.js'
import { Empty, Loading } from '../parts/notice.js'
import { JsonText, SchemaView, wordsOf } from '../parts/schema.js'
import { Table } from '../parts/table.js'
import { text } from '../text.js'
import { Moments } from './moments.js'
import { TryDialog } from './try.js'

const said = text.catalog
const kinds = ['tool', 'prompt', 'resource', 'template']
const maxPages = 10

export function Page() {
  return html`<${WithEndpoint}>${(endpoint, choice) => html`<${OfEndpoint} ...${{ endpoint, choice }} />`}<//>`
}

/** The choice that shows both catalogs as they are now. @returns {{ endpoint: string, at: (string | undefined)[] }} */
const noMoments = (endpoint) => ({ endpoint, at: [undefined, undefined] })

function OfEndpoint({ endpoint, choice }) {
  const kind = route.value.params.get('kind') ?? 'tool'
  const from = useSignal(anybody())
  const to = useSignal(anybody())
  const isCompared = useSignal(false)
  const moments = useSignal(noMoments(endpoint.name))
  const details = useLoaded((signal) => get(path`/v1/tenants/${tenant.value}`, signal), [])
  const keys = (details.value?.keys ?? []).map(({ name }) => name)
  const inputs = { endpoint: endpoint.name, kind }
  const { at } = moments.value.endpoint === endpoint.name ? moments.value : noMoments(endpoint.name)
  return html`<div class="row">
      ${choice}
      <${Choice}
        label=${said.kind}
        value=${kind}
        choices=${kinds.map((each) => [each, said.kinds[each]])}
        onChange=${(value) => setParams({ kind: value })}
      />
      <label class="check"
        ><input
          type="checkbox"
          checked=${isCompared.value}
          onChange=${({ currentTarget }) => {
            isCompared.value = currentTarget.checked
            moments.value = noMoments(endpoint.name)
          }}
        />
        <span>${said.compare}</span></label
      >
    </div>
    <div class="callers">
      <${CallerFields}
        title=${isCompared.value ? said.first : said.seenBy}
        ...${{ keys }}
        onChange=${(seen) => (from.value = seen)}
      />
      ${
        isCompared.value &&
        html`<${CallerFields} title=${said.second} ...${{ keys }} onChange=${(seen) => (to.value = seen)} />`
      }
    </div>
    ${
      isCompared.value &&
      html`<${Moments}
        endpoint=${endpoint.name}
        labels=${[said.firstWhen, said.secondWhen]}
        chosen=${at}
        onChange=${(chosen) => (moments.value = { endpoint: endpoint.name, at: chosen })}
      />`
    }
    ${
      isCompared.value
        ? html`<${Difference} ...${inputs} from=${{ ...from.value, at: at[0] }} to=${{ ...to.value, at: at[1] }} />`
        : html`<${Entries} key=${endpoint.name} ...${inputs} seen=${from.value} />`
    }`
}

async function wholeCatalog(target, body, signal) {
  let whole
  for (let pages = 0, cursor; pages < maxPages; pages++) {
    const page = await post(target, { ...body, definitions: true, limit: 200, ...(cursor && { cursor }) }, signal)
    whole = { ...page, items: [...(whole?.items ?? []), ...page.items] }
    cursor = page.nextCursor
    if (cursor === null) break
  }
  return whole
}

const firstSentence = (words = '') => /^.*?(?:[.!?](?=\s)|$)/m.exec(wordsOf(words))?.[0] ?? ''

function Entries({ endpoint, kind, seen }) {
  const opened = useSignal(/** @type {any} */ (undefined))
  const tried = useSignal(/** @type {any} */ (undefined))
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/catalog`
  const catalog = useLoaded(
    (signal) => wholeCatalog(target, { kind, ...seen }, signal),
    [target, kind, JSON.stringify(seen)]
  )
  return html`<${Loading} loaded=${catalog}>
      ${({ items, count, tokens, unknown, nextCursor }) => html`
        <p class="sum">${said.sum(count, kind, tokens)}</p>
        ${unknown.length > 0 && html`<p class="note warn">${said.unknown(unknown.join(', '))}</p>`}
        ${
          items.length === 0
            ? html`<${Empty} title=${said.nothing(kind)} why=${said.nothingWhy} />`
            : html`<${Table}
                caption=${said.caption(kind)}
                rows=${items}
                isWhole=${nextCursor === null}
                keyOf=${({ name, upstream }) => `${name} ${upstream}`}
                textOf=${({ name, upstream, definition }) => `${name} ${upstream} ${definition.description ?? ''}`}
                columns=${[
                  {
                    title: said.name,
                    isHead: true,
                    cell: (entry) =>
                      html`<button type="button" class="link" onClick=${() => (opened.value = entry)}>
                        ${entry.name}
                      </button>`
                  },
                  { title: said.upstream, cell: ({ upstream }) => upstream },
                  {
                    title: said.what,
                    isLong: true,
                    cell: ({ definition }) => firstSentence(definition.description ?? definition.title)
                  },
                  { title: said.tokens, isNumber: true, cell: (entry) => text.amount(entry.tokens) }
                ]}
              />`
        }
      `}
    <//>
    ${
      opened.value &&
      html`<${EntryDialog}
        entry=${opened.value}
        ...${{ endpoint, kind, seen }}
        onTry=${() => {
          tried.value = opened.value
          opened.value = undefined
        }}
        onClose=${() => (opened.value = undefined)}
      />`
    }
    ${tried.value && html`<${TryDialog} ...${{ endpoint }} tool=${tried.value.definition} onClose=${() => (tried.value = undefined)} />`}`
}

const mayTry = () => ['platform-admin', 'tenant-admin'].includes(administrator.value?.role ?? '')

function EntryDialog({ entry, endpoint, kind, seen, onTry, onClose }) {
  const { name, upstream, upstreamName, definition, tokens } = entry
  const { title, description, inputSchema, outputSchema, annotations } = definition
  const button =
    kind === 'tool' && mayTry() && html`<button type="button" class="main" onClick=${onTry}>${said.tryIt}</button>`
  return html`<${Dialog} title=${name} onClose=${onClose} actions=${button} isWide>
    <dl class="facts">
      ${
        title &&
        html`<dt>${said.title}</dt>
          <dd>${title}</dd>`
      }
      <dt>${said.upstream}</dt>
      <dd><code>${upstream}/${upstreamName}</code></dd>
      <dt>${said.tokens}</dt>
      <dd>${text.amount(tokens)}</dd>
      ${
        annotations &&
        html`<dt>${said.annotations}</dt>
          <dd>
            ${Object.entries(annotations).map(([hint, value]) => html`<span class="mark">${hint}: ${wordsOf(value)}</span>${' '}`)}
          </dd>`
      }
    </dl>
    ${description && html`<p class="said">${wordsOf(description)}</p>`}
    ${inputSchema && html`<${SchemaView} title=${said.arguments} schema=${inputSchema} />`}
    ${outputSchema && html`<${SchemaView} title=${said.output} schema=${outputSchema} />`}
    <${Why} ...${{ endpoint, kind, caller: seen.caller, name: `${upstream}/${upstreamName}` }} />
    <${JsonText} summary=${said.definition} value=${definition} />
  <//>`
}

function Why({ endpoint, kind, caller, name }) {
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/explain`
  const why = useLoaded((signal) => post(target, { kind, caller, name }, signal), [])
  return html`<section class="part">
    <h3>${said.why}</h3>
    <${Loading} loaded=${why}>${({ sentence }) => html`<p>${sentence}</p>`}<//>
  </section>`
}

function Difference({ endpoint, kind, from, to }) {
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/catalog/diff`
  const diff = useLoaded(
    (signal) => post(target, { kind, from, to }, signal),
    [target, kind, JSON.stringify([from, to])]
  )
  const names = (all) => all.map((name) => html`<li key=${name}><code>${name}</code></li>`)
  return html`<${Loading} loaded=${diff}>
    ${({ onlyFrom, onlyTo, changed, same, tokens, unknown }) => html`
      <p class="sum">${said.same(same, tokens.from, tokens.to)}</p>
      ${unknown.length > 0 && html`<p class="note warn">${said.unknown(unknown.join(', '))}</p>`}
      <div class="cards">
        <section class="card">
          <h2>${said.onlyFirst(onlyFrom.length)}</h2>
          <ul class="names">
            ${names(onlyFrom)}
          </ul>
        </section>
        <section class="card">
          <h2>${said.onlySecond(onlyTo.length)}</h2>
          <ul class="names">
            ${names(onlyTo)}
          </ul>
        </section>
      </div>
      ${
        changed.length > 0 &&
        html`<section class="part">
          <h2>${said.changed(changed.length)}</h2>
          ${changed.map(
            (each) =>
              html`<details key=${each.name}>
                <summary><code>${each.name}</code></summary>
                <div class="cards">
                  <pre tabindex="0" role="group" aria-label=${said.first}>
${JSON.stringify(each.from, undefined, 2)}</pre>
                  <pre tabindex="0" role="group" aria-label=${said.second}>
${JSON.stringify(each.to, undefined, 2)}</pre>
                </div>
              </details>`
          )}
        </section>`
      }
    `}
  <//>`
}
