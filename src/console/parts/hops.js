// Shows the steps of a check while it runs: each hop when it is done, and the first failed one with what to do.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { problemOf } from '../core/api.js'
import { html } from '../core/html.js'
import { eventsOf } from '../core/posted.js'
import { text } from '../text.js'

/** @typedef {{ state: 'ready' | 'running' | 'done' | 'refused', hops: { hop: string, text: string }[], [member: string]: any }} Found */

/** @returns {{ found: Found, run: (target: string, body: unknown) => Promise<void>, forget: () => void }} */
export function useHops() {
  const found = useSignal(/** @type {Found} */ ({ hops: [], state: 'ready' }))
  const running = useRef(/** @type {AbortController | undefined} */ (undefined))
  useEffect(() => () => running.current?.abort(), [])

  async function run(target, body) {
    running.current?.abort()
    const controller = new AbortController()
    running.current = controller
    found.value = { hops: [], state: 'running' }
    const take = (event, data) => {
      const now = found.peek()
      found.value = event === 'hop' ? { ...now, hops: [...now.hops, data] } : { ...now, state: 'done', ...data }
    }
    try {
      await eventsOf(target, body, take, controller.signal)
      if (found.peek().state === 'running') found.value = { ...found.peek(), state: 'refused', problem: text.cutOff }
    } catch (error) {
      if (controller.signal.aborted) return
      found.value = { ...found.peek(), state: 'refused', problem: problemOf(error) }
    }
  }

  function forget() {
    running.current?.abort()
    found.value = { hops: [], state: 'ready' }
  }
  return { found: found.value, run, forget }
}

/** @param {{ state: Found['state'], hops: Found['hops'], fault?: any, what?: string }} props what: the heading of the remedy */
export const Hops = ({ state, hops, fault, what }) =>
  html`${
    state !== 'ready' &&
    html`<ol class="sentences hops" aria-live="polite">
      ${hops.map(({ hop, text: seen }) => html`<li class="good" key=${hop}><strong>${hop}</strong> ${seen}</li>`)}
      ${state === 'running' && html`<li class="muted">${text.hopsGoOn}</li>`}
      ${fault && html`<li class="bad"><strong>${fault.hop}</strong> ${fault.problem}</li>`}
    </ol>`
  }
  ${
    fault &&
    html`<div class="note bad">
      <p><strong>${what}</strong></p>
      <p>${fault.remedy}</p>
      <p class="muted">${fault.code}</p>
    </div>`
  }`
