// The running calls. Each process reports its own once a second.

import { html } from '../../core/html.js'
import { clockTime, duration } from '../../parts/time.js'
import { text } from '../../text.js'
import { calledIn } from './call.js'

const said = text.live

/** The calls of a process are forgotten if it has not reported for this long. */
const believedMs = 5_000
const maxShown = 20

export function createRunning() {
  /** The last report by process and tenant. @type {Map<string, { calls: any[], leftOut: number, at: number }>} */
  const all = new Map()
  return {
    /** @param {{ process: string, tenant: string, calls: any[], leftOut: number }} said */
    told({ process, tenant, calls, leftOut }) {
      const key = `${process} ${tenant}`
      if (calls.length + leftOut === 0) all.delete(key)
      else all.set(key, { calls, leftOut, at: performance.now() })
    },
    /** @param {string} requestId */
    ended(requestId) {
      for (const each of all.values()) each.calls = each.calls.filter((call) => call.requestId !== requestId)
    },
    /** The running calls, the longest-running first. @returns {{ calls: any[], leftOut: number }} */
    now() {
      for (const [key, { at }] of all) if (performance.now() - at > believedMs) all.delete(key)
      const parts = [...all.values()]
      return {
        calls: parts.flatMap(({ calls }) => calls).sort((a, b) => b.ms - a.ms),
        leftOut: parts.reduce((sum, { leftOut }) => sum + leftOut, 0)
      }
    }
  }
}

/** @param {{ calls: any[], leftOut: number, onOpen: (call: any) => void }} props */
export function Running({ calls, leftOut, onOpen }) {
  const shown = calls.slice(0, maxShown)
  const others = calls.length - shown.length + leftOut
  return html`<section class="part" aria-labelledby="running">
    <h2 id="running">${said.running(calls.length + leftOut)}</h2>
    ${
      shown.length > 0 &&
      html`<div class="table-scroll" tabindex="0" role="group" aria-label=${said.runningCaption}>
        <table class="calls">
          <caption class="unseen">
            ${said.runningCaption}
          </caption>
          <thead>
            <tr>
              <th scope="col">${said.begun}</th>
              <th scope="col">${said.called}</th>
              <th scope="col">${said.waitsFor}</th>
              <th scope="col" class="number">${said.soFar}</th>
              <th scope="col" class="wider">${said.caller}</th>
              <th scope="col" class="wider">${text.tenant}</th>
            </tr>
          </thead>
          <tbody>
            ${shown.map(
              (call) =>
                html`<tr key=${call.requestId}>
                  <td>
                    <button type="button" class="link" onClick=${() => onOpen(call)}>${clockTime(call.time)}</button>
                  </td>
                  <th scope="row">
                    ${call.upstream && html`<span class="muted">${call.upstream}/</span>`}${calledIn(call)}
                  </th>
                  <td>${said.waits[call.waitsFor]}</td>
                  <td class="number">${duration(call.ms)}</td>
                  <td class="wider">${call.user ?? call.apiKey ?? text.none}</td>
                  <td class="wider">
                    ${call.tenant}${call.endpoint !== 'default' && html`<span class="muted">/${call.endpoint}</span>`}
                  </td>
                </tr>`
            )}
          </tbody>
        </table>
      </div>`
    }
    ${others > 0 && html`<p class="muted">${said.moreRun(others)}</p>`}
  </section>`
}
