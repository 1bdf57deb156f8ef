// Audit records: filters them by kind and time, shows one, downloads them as lines of JSON, and verifies that none is
// missing or altered.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { get, path, problemOf } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { eventsOf } from '../core/posted.js'
import { route, setParams, tenant } from '../core/route.js'
import { Dialog } from '../parts/dialog.js'
import { Field } from '../parts/form.js'
import { Empty, Loading, outcomeMark, ProblemNote } from '../parts/notice.js'
import { JsonText } from '../parts/schema.js'
import { Table } from '../parts/table.js'
import { dateTime } from '../parts/time.js'
import { text } from '../text.js'
import { Export, queryOf } from './audit/export.js'

const said = text.audit
const kinds = ['call', 'refused', 'session', 'login', 'change', 'lost', 'begin', 'checkpoint', 'end']
const perPage = 100
/** The most requests of one search, since records of a rare kind may be far back. */
const maxRequests = 10

export function Page() {
  const { params } = route.value
  const kind = kinds.find((each) => each === params.get('kind')) ?? ''
  // A parameter that is no valid time counts as empty, because its field shows it as empty.
  const timeOf = (name) => (Number.isNaN(Date.parse(params.get(name) ?? '')) ? '' : (params.get(name) ?? ''))
  const [since, until] = [timeOf('since'), timeOf('until')]
  const time = (name, value) =>
    html`<${Field} label=${said[name]}>
      ${(attributes) =>
        html`<input
          ...${attributes}
          type="datetime-local"
          value=${value}
          onChange=${({ currentTarget }) => setParams({ [name]: currentTarget.value || undefined })}
        />`}
    <//>`
  return html`<${Verification} />
    <section class="part" aria-labelledby="records">
      <h2 id="records">${said.records}</h2>
      <div class="row range">
        <${Field} label=${said.kind}>
          ${(attributes) =>
            html`<select
              ...${attributes}
              onChange=${({ currentTarget }) => setParams({ kind: ['', ...kinds][currentTarget.selectedIndex] || undefined })}
            >
              <option selected=${kind === ''}>${said.anyKind}</option>
              ${kinds.map((each) => html`<option key=${each} selected=${each === kind}>${said.kinds[each]}</option>`)}
            </select>`}
        <//>
        ${time('since', since)} ${time('until', until)}
      </div>
      <${Export} ...${{ kind, since, until }} />
      <${Records} key=${[kind, since, until].join(' ')} ...${{ kind, since, until }} />
    </section>`
}

function Verification() {
  const state = useSignal(/** @type {any} */ ({}))
  const running = useRef(/** @type {AbortController | undefined} */ (undefined))
  useEffect(() => () => running.current?.abort(), [])
  async function verify() {
    const controller = new AbortController()
    running.current = controller
    state.value = { isRunning: true }
    const take = (event, data) => {
      if (event === 'read') state.value = { isRunning: true, ...data }
      else if (event === 'report') state.value = { report: data }
      else if (event === 'problem') state.value = { problem: data }
    }
    try {
      await eventsOf(path`/v1/tenants/${tenant.value}/audit/verification`, undefined, take, controller.signal)
      if (state.peek().isRunning) state.value = { problem: text.cutOff }
    } catch (error) {
      if (controller.signal.aborted) return
      state.value = { problem: problemOf(error) }
    }
  }
  const { isRunning = false, segments = 0, of = 0, report, problem } = state.value
  return html`<section class="part" aria-labelledby="verification">
    <div class="row">
      <h2 id="verification">${said.verification}</h2>
      <button type="button" class="push" disabled=${isRunning} onClick=${verify}>
        ${isRunning ? said.verifying : said.verify}
      </button>
    </div>
    <p class="muted">${said.verificationHow}</p>
    ${isRunning && of > 1 && html`<progress aria-label=${said.verifying} value=${segments} max=${of}></progress>`}
    <div role="status">${report && html`<${Report} report=${report} />`}</div>
    ${problem && html`<${ProblemNote} problem=${problem} />`}
  </section>`
}

const sentences = (list, mark) =>
  list.length > 0 &&
  html`<ul class="sentences">
    ${list.map((each) => html`<li key=${each} class=${mark}>${each}</li>`)}
  </ul>`

function Report({ report: { isWhole, records, chains, signatures, keys, problems, notes } }) {
  const foreign = keys.filter(({ isOwn }) => !isOwn)
  return html`<div class="part">
    <p class=${`note ${problems.length > 0 ? 'bad' : 'good'}`}>
      <strong>${problems.length > 0 ? said.broken(problems.length) : said.whole}</strong>
      <span>${said.counts(records, chains, signatures)} ${isWhole ? said.all : said.part}</span>
    </p>
    ${sentences(problems, 'bad')}
    ${
      foreign.length > 0 &&
      html`<div class="note warn">
        <p>${said.foreign}</p>
        ${foreign.map(({ key }) => html`<code key=${key}>${key}</code>`)}
      </div>`
    }
    ${
      notes.length > 0 &&
      html`<details>
        <summary>${said.notes(notes.length)}</summary>
        ${sentences(notes, '')}
      </details>`
    }
  </div>`
}

/** The short text that says what a record is about. */
const whatOf = ({ action, name, method, reason, outcome }) => action ?? name ?? method ?? reason ?? outcome ?? text.none

const whoOf = ({ by }) => by?.name ?? by?.subject ?? text.none

function Records({ kind, since, until }) {
  const found = useSignal(/** @type {any[]} */ ([]))
  const cursor = useSignal(/** @type {string | null} */ (''))
  const opened = useSignal(/** @type {any} */ (undefined))
  async function readOn(signal) {
    const query = { limit: String(perPage), ...queryOf({ kind, since, until }) }
    let items = /** @type {any[]} */ ([])
    let at = cursor.peek()
    for (let requests = 0; requests < maxRequests && items.length < perPage && at !== null; requests++) {
      const asked = new URLSearchParams({ ...query, ...(at && { cursor: at }) })
      const answer = await get(path`/v1/tenants/${tenant.value}/audit?` + asked, signal)
      items = [...items, ...answer.items]
      at = answer.nextCursor
    }
    found.value = [...found.peek(), ...items]
    cursor.value = at
    return true
  }
  const reading = useLoaded(readOn, [])
  const records = found.value
  const older =
    cursor.value !== null &&
    html`<button type="button" disabled=${reading.isLoading} onClick=${reading.again}>
      ${reading.isLoading ? text.loading : said.older}
    </button>`
  return html`<${Loading} loaded=${reading}>
      ${() =>
        records.length === 0
          ? html`<${Empty}
              title=${cursor.value === null ? said.none : said.noneYet}
              why=${cursor.value === null ? said.noneWhy : undefined}
              >${older}<//
            >`
          : html`<${Table}
                caption=${said.caption}
                rows=${records}
                keyOf=${({ chain, seq }) => `${chain} ${seq}`}
                textOf=${(record) => JSON.stringify(record)}
                columns=${[
                  {
                    title: said.time,
                    cell: (record) =>
                      html`<button type="button" class="link" onClick=${() => (opened.value = record)}>
                        ${dateTime(record.time)}
                      </button>`
                  },
                  { title: said.kind, cell: (record) => said.kinds[record.kind] ?? record.kind },
                  { title: said.who, cell: whoOf },
                  { title: said.what, isHead: true, cell: whatOf },
                  {
                    title: said.outcome,
                    cell: ({ outcome }) =>
                      outcome && html`<span class=${`mark ${outcomeMark(outcome)}`}>${outcome}</span>`
                  },
                  { title: said.from, cell: ({ from }) => from }
                ]}
              />
              <div class="row">${older}</div>`}
    <//>
    ${opened.value && html`<${RecordDialog} record=${opened.value} onClose=${() => (opened.value = undefined)} />`}`
}

function RecordDialog({ record, onClose }) {
  return html`<${Dialog} title=${said.one(said.kinds[record.kind] ?? record.kind)} onClose=${onClose} isWide>
    <dl class="facts">
      ${Object.entries(record).map(
        ([name, value]) =>
          html`<dt key=${name}>${said.members[name] ?? name}</dt>
            <dd>
              ${name === 'time' ? dateTime(value) : typeof value === 'object' ? JSON.stringify(value) : String(value)}
            </dd>`
      )}
    </dl>
    <${JsonText} summary=${said.json} value=${record} />
  <//>`
}
