// Shows one call: where its time went, and everything that is known about it.

import { administrator } from '../../core/api.js'
import { html } from '../../core/html.js'
import { Dialog } from '../../parts/dialog.js'
import { clockTime, duration } from '../../parts/time.js'
import { text } from '../../text.js'

const said = text.live

/** What was called: the name of the tool, else the method and what it names. */
export const calledIn = ({ tool, method, prompt, resource }) =>
  tool ?? [method, prompt ?? resource].filter((part) => part !== undefined).join(' ')

/**
 * The bars of the timeline, which show where the time of a call went.
 * @returns {{ name: string, from: number, ms: number, isInner?: boolean }[]}
 */
function hopsOf({ ms, waitMs, upstreamMs, steps = [] }) {
  if (waitMs === undefined) return [{ name: said.hops.gateway, from: 0, ms }]
  const rounds = steps.filter(({ kind }) => kind === 'round')
  const others = rounds.reduce((sum, round) => sum + round.ms, 0)
  const first = Math.max(0, Math.min(upstreamMs ?? ms - waitMs, ms - waitMs) - others)
  const end = rounds.reduce((latest, round) => Math.max(latest, round.at + round.ms), waitMs + first)
  return [
    { name: said.hops.before, from: 0, ms: waitMs },
    { name: said.hops.upstream, from: waitMs, ms: first },
    ...rounds.map((round, at) => ({ name: said.hops.round(at + 2), from: round.at, ms: round.ms })),
    ...steps
      .filter(({ kind }) => kind === 'asked')
      .map((step) => ({
        name: said.hops.asked(step.name, step.answer),
        from: step.at,
        ms: step.ms ?? ms - step.at,
        isInner: true
      })),
    ...steps
      .filter(({ kind }) => kind === 'again')
      .map(({ name, at }) => ({ name: said.hops.again(name), from: at, ms: 0, isInner: true })),
    ...notifiedOf(steps),
    { name: said.hops.after, from: end, ms: Math.max(0, ms - end) }
  ]
}

/** The notifications of each method as one bar, from the first to the last. */
function notifiedOf(steps) {
  const byName = Map.groupBy(
    steps.filter(({ kind }) => kind === 'notified'),
    ({ name }) => name
  )
  return [...byName].map(([name, all]) => ({
    name: said.hops.notified(name, all.length),
    from: all[0].at,
    ms: all.at(-1).at - all[0].at,
    isInner: true
  }))
}

/** Members that are not listed: they are shown elsewhere, or used only by this page. */
const hidden = new Set(['key', 'words', 'waitsFor', 'time', 'ms', 'waitMs', 'upstreamMs', 'steps'])

const shownOf = (call) => Object.entries(call).filter(([name, value]) => !hidden.has(name) && value !== undefined)
const valueText = (value) => (Array.isArray(value) ? value.join(', ') : String(value))

/** The text that the filter searches: all shown values of a call, without the names of members. */
export function wordsOf(call) {
  const { time, ms, upstream, tenant, endpoint, steps = [] } = call
  return [
    clockTime(time),
    duration(ms),
    `${upstream}/${calledIn(call)}`,
    `${tenant}/${endpoint}`,
    ...shownOf(call).map(([, value]) => valueText(value)),
    ...steps.flatMap(({ name = '', answer = '' }) => [said.reasons[name] ?? name, said.answers[answer] ?? answer])
  ]
    .join('\n')
    .toLowerCase()
}

/** A trace id; a link if the configuration has a URL for traces. */
function Trace({ id }) {
  const { traceUrl } = administrator.value ?? {}
  if (!traceUrl) return html`<code>${id}</code>`
  return html`<a
    href=${traceUrl.replaceAll('{traceId}', encodeURIComponent(id))}
    target="_blank"
    rel="noopener noreferrer"
    >${id}</a
  >`
}

export function CallDialog({ call, onClose }) {
  return html`<${Dialog} title=${said.one(calledIn(call))} onClose=${onClose} isWide>
    <section class="part">
      <h3>
        ${call.waitsFor ? said.soFarTimeline(duration(call.ms), said.waits[call.waitsFor]) : said.timeline(duration(call.ms))}
      </h3>
      <ol class="waterfall">
        ${hopsOf(call).map(
          ({ name, from, ms, isInner }) =>
            html`<li class=${isInner ? 'inner' : ''}>
              <span>${name}</span>
              <span class="track"
                ><span
                  class="bar"
                  style=${{ marginLeft: `${(from / call.ms) * 100 || 0}%`, width: `${Math.max(0.5, (ms / call.ms) * 100 || 0)}%` }}
                ></span
              ></span>
              <span class="number">${duration(ms)}</span>
            </li>`
        )}
      </ol>
    </section>
    ${call.error && html`<p class="note bad">${call.error}</p>`}
    <dl class="facts">
      ${shownOf(call).map(
        ([name, value]) =>
          html`<dt>${said.members[name] ?? name}</dt>
            <dd>${name === 'traceId' ? html`<${Trace} id=${String(value)} />` : valueText(value)}</dd>`
      )}
    </dl>
  <//>`
}
