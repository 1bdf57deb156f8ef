// Running calls, and calls as they end, of every process. They can be filtered by everything that is shown of them,
// paused, and opened one by one.

import { useSignal } from '@preact/signals'
import { Component } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { path } from '../core/api.js'
import { listen } from '../core/events.js'
import { html } from '../core/html.js'
import { route, setParams, tenant } from '../core/route.js'
import { Empty, outcomeMark, ProblemNote } from '../parts/notice.js'
import { FilterField } from '../parts/table.js'
import { clockTime, duration } from '../parts/time.js'
import { text } from '../text.js'
import { calledIn, CallDialog, wordsOf } from './live/call.js'
import { createRunning, Running } from './live/running.js'

const said = text.live

/** How many calls the filter searches, and how many are shown: fewer while new ones come in. */
const maxKept = 2_000
const maxShown = { still: 200, moving: 30 }
/** The shortest time between two renderings of the page. */
const drawMs = 200

export function Page() {
  const drawn = useSignal(0)
  const state = useSignal(
    /** @type {{ name: string, problem?: import('../core/api.js').Problem | undefined }} */ ({ name: 'waiting' })
  )
  const dropped = useSignal(0)
  const filter = useSignal(route.value.params.get('filter') ?? '')
  const isFailedOnly = useSignal(false)
  const isPaused = useSignal(false)
  const opened = useSignal(/** @type {any} */ (undefined))
  const calls = useRef(/** @type {any[]} */ ([]))
  const still = useRef(
    /** @type {{ ended: any[], running: { calls: any[], leftOut: number } } | undefined} */ (undefined)
  )
  const running = useMemo(createRunning, [])
  const missed = useRef(0)
  const arrived = useRef(0)

  useEffect(() => {
    const controller = new AbortController()
    const target = tenant.value === '' ? '/v1/calls' : path`/v1/tenants/${tenant.value}/calls`
    let hadRunning = false
    let isDue = false
    const take = (event, data) => {
      // Running calls that were dropped are reported again a second later, so they are not counted.
      if (event === 'dropped' && JSON.parse(data).kind !== 'running') dropped.value += JSON.parse(data).count
      if (event === 'running') running.told(JSON.parse(data))
      if (event !== 'call') return
      const call = JSON.parse(data)
      running.ended(call.requestId)
      calls.current.push({ ...call, key: ++arrived.current })
      missed.current++
      isDue = true
    }
    void listen(`${target}?running=true`, {
      signal: controller.signal,
      onEvent: take,
      onState: (name, problem) => (state.value = { name, problem })
    })
    const timer = setInterval(() => {
      const hasRunning = running.now().calls.length > 0
      if (!isDue && !hasRunning && !hadRunning) return
      isDue = false
      hadRunning = hasRunning
      if (calls.current.length > maxKept) calls.current = calls.current.slice(-maxKept)
      drawn.value++
    }, drawMs)
    return () => {
      controller.abort()
      clearInterval(timer)
    }
  }, [])
  useEffect(() => setParams({ filter: filter.value || undefined }), [filter.value])

  function pause() {
    still.current = { ended: calls.current.slice(), running: running.now() }
    missed.current = 0
    isPaused.value = !isPaused.value
  }

  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
  const held = isPaused.value ? still.current : undefined
  const kept = held?.ended ?? calls.current
  const now = held?.running ?? running.now()
  const hasWords = (call) => words.every((word) => (call.words ??= wordsOf(call)).includes(word))
  const isWanted = (call) => (!isFailedOnly.value || call.outcome !== 'ok') && hasWords(call)
  const found = kept.filter(isWanted)
  const { name, problem } = state.value
  return html`<div class="row" data-drawn=${drawn.value} data-arrived=${arrived.current}>
      <${FilterField} label=${said.filter} value=${filter} shown=${found.length} all=${kept.length} />
      <label class="check"
        ><input
          type="checkbox"
          checked=${isFailedOnly.value}
          onChange=${({ currentTarget }) => (isFailedOnly.value = currentTarget.checked)}
        />
        <span>${said.failedOnly}</span></label
      >
      <button type="button" class="push" aria-pressed=${isPaused.value} onClick=${pause}>${said.pause}</button>
      <span class=${`mark ${name === 'open' ? 'good' : 'warn'}`} role="status"
        >${isPaused.value ? said.paused(missed.current) : said.states[name]}</span
      >
    </div>
    ${problem && html`<${ProblemNote} problem=${problem} />`}
    ${!isFailedOnly.value && html`<${Running} calls=${now.calls.filter(hasWords)} leftOut=${now.leftOut} onOpen=${(call) => (opened.value = call)} />`}
    <h2 class="unseen">${said.caption}</h2>
    ${dropped.value > 0 && html`<p class="note warn">${said.dropped(dropped.value)}</p>`}
    ${
      found.length === 0
        ? html`<${Empty}
            title=${kept.length === 0 ? said.none : said.noneFound}
            why=${kept.length === 0 ? said.noneWhy : undefined}
          />`
        : html`<${CallTable}
            calls=${found.slice(isPaused.value ? -maxShown.still : -maxShown.moving).toReversed()}
            onOpen=${(call) => (opened.value = call)}
          />`
    }
    ${opened.value && html`<${CallDialog} call=${opened.value} onClose=${() => (opened.value = undefined)} />`}`
}

function CallTable({ calls, onOpen }) {
  return html`<div class="table-scroll" tabindex="0" role="group" aria-label=${said.caption}>
    <table class="calls">
      <caption class="unseen">
        ${said.caption}
      </caption>
      <thead>
        <tr>
          <th scope="col">${said.time}</th>
          <th scope="col">${said.called}</th>
          <th scope="col">${said.outcome}</th>
          <th scope="col" class="number wider">${said.took}</th>
          <th scope="col" class="wider">${said.caller}</th>
          <th scope="col" class="wider">${text.tenant}</th>
        </tr>
      </thead>
      <tbody>
        ${calls.map((call) => html`<${Row} key=${call.key} call=${call} onOpen=${onOpen} />`)}
      </tbody>
    </table>
  </div>`
}

/** The row of a call that has ended, which is rendered only once, since there may be hundreds of calls a second. */
class Row extends Component {
  /** @override */
  shouldComponentUpdate() {
    return false
  }

  /** @override */
  render({ call, onOpen }) {
    return html`<tr>
      <td><button type="button" class="link" onClick=${() => onOpen(call)}>${clockTime(call.time)}</button></td>
      <th scope="row">
        ${call.upstream && html`<span class="muted">${call.upstream}/</span><wbr />`}${calledIn(call)}
      </th>
      <td><span class=${`mark ${outcomeMark(call.outcome)}`}>${call.outcome}</span></td>
      <td class="number wider">${duration(call.ms)}</td>
      <td class="wider">${call.user ?? call.apiKey ?? text.none}</td>
      <td class="wider">
        ${call.tenant}${call.endpoint !== 'default' && html`<span class="muted">/${call.endpoint}</span>`}
      </td>
    </tr>`
  }
}
