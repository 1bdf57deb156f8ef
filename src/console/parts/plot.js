// A plot over time. The plots of a page share their zoom and the position of the pointer, so that one moment can be
// compared in all of them. A sentence says the same for screen readers.

import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { html } from '../core/html.js'
import { isDark } from '../core/theme.js'
import { text } from '../text.js'
import { moves, point, showChosen, spanOf, stepsWithin } from './plot-keys.js'
import { axisTimes, momentAmong } from './time.js'

/**
 * @typedef {{ name: string, values: (number | null)[] }} Line
 * @typedef {{
 *   zoom: import('@preact/signals').Signal<[from: number, to: number] | null>,
 *   at: import('@preact/signals').Signal<number | null>,
 *   mark: import('@preact/signals').Signal<number | null>
 * }} Shared zoom: in epoch seconds; at: the step under the pointer; mark: the step at which a choice by keyboard began
 */

const heightPx = 170
/**
 * The steps to draw as points: no line leads to a value between two steps without calls.
 * @type {(plot: uPlot, line: number) => number[]}
 */
const alone = ({ data, series }, line) => {
  const values = data[line] ?? []
  const isNone = (at) => (values[at] ?? null) === null
  const [first, last] = series[0]?.idxs ?? [0, values.length - 1]
  const found = []
  for (let at = first; at <= last; at++) if (!isNone(at) && isNone(at - 1) && isNone(at + 1)) found.push(at)
  return found
}

/** Shorter movements of a pressed mouse do not zoom. */
const shortestDragPx = 6
const colours = 6

/** The colour of a CSS variable, which a canvas does not know. @param {HTMLElement} within @param {string} name */
function styled(within, name) {
  const probe = within.appendChild(document.createElement('i'))
  probe.style.color = `var(${name})`
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/**
 * @param {{ title: string, times: number[], lines: Line[], format: (value: number) => string, shared: Shared }} props
 * times: epoch seconds
 */
export function Plot({ title, times, lines, format, shared }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null))
  const plot = useRef(/** @type {uPlot | undefined} */ (undefined))
  const latest = useRef({ times, format })
  latest.current = { times, format }
  const id = useId()
  const { zoom, at, mark } = shared
  const names = lines.map(({ name }) => name).join('\n')
  const data = /** @type {uPlot.AlignedData} */ ([times, ...lines.map(({ values }) => values)])

  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current)
    const made = new uPlot(optionsFor(lines, element, latest, shared), data, element)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: heightPx }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [names, isDark.value])
  useEffect(() => plot.current?.setData(data), [times, lines])
  useEffect(() => plot.current?.redraw(true, true), [zoom.value])
  useEffect(() => plot.current && point(plot.current, times, at.value), [at.value])
  useEffect(
    () => plot.current && showChosen(plot.current, times, mark.value, at.value),
    [mark.value, mark.value !== null && at.value]
  )

  /** Moves the pointer and chooses a span in all plots, as the mouse does. @param {KeyboardEvent} event */
  function press(event) {
    const move = moves[event.key]
    if (move !== undefined) {
      const { first, last } = stepsWithin(times, zoom.peek())
      const from = at.peek() ?? last
      mark.value = event.shiftKey ? (mark.peek() ?? from) : null
      at.value = Math.min(Math.max(from + move, first), last)
    } else if (event.key === 'Escape') {
      if (mark.value !== null) mark.value = null
      else {
        zoom.value = null
        leave()
      }
    } else if (event.key === 'Enter') {
      if (mark.value !== null && mark.value !== at.value) zoom.value = spanOf(times, mark.value, at.value)
      leave()
    } else return
    event.preventDefault()
  }
  function leave() {
    mark.value = null
    at.value = null
  }

  // Memoized, because the page is rendered at each move of the pointer.
  const sentences = useMemo(
    () => lines.map(({ name, values }) => sentenceOf(name, values, format)).join(' '),
    [times, lines]
  )
  const shown = at.value ?? times.length - 1
  const told = lines.map(({ name, values }) => ({ name, value: toldOf(values[shown], format) }))
  const when = at.value === null ? text.plot.now : momentAmong(times[shown] ?? 0, times)
  const [from, to] = (zoom.value ?? []).map((each) => momentAmong(each, times))
  const span =
    mark.value !== null
      ? text.plot.chosen(momentAmong(times[mark.value] ?? 0, times), when)
      : zoom.value && text.plot.zoomed(from, to)
  return html`<figure class="plot" aria-labelledby=${id}>
    <figcaption id=${id}>${title}</figcaption>
    <div
      ref=${place}
      class="plot-place"
      role="slider"
      tabindex="0"
      aria-labelledby=${id}
      aria-describedby=${`${id}-keys`}
      aria-valuemin="0"
      aria-valuemax=${times.length - 1}
      aria-valuenow=${shown}
      aria-valuetext=${
        (span ?? '') +
        text.plot.moment(
          when,
          told.map(({ name, value }) => `${name} ${value}`)
        )
      }
      onKeyDown=${press}
      onBlur=${leave}
    ></div>
    <p id=${`${id}-keys`} class="unseen">${text.plot.keys}</p>
    <ul class="legend">
      ${told.map(
        ({ name, value }, index) =>
          html`<li key=${name}>
            <span class=${`swatch line-${index % colours}`}></span><span class="legend-name">${name}</span>
            <span class="number">${value}</span>
          </li>`
      )}
      <li class="muted">${when}</li>
    </ul>
    <p class="unseen">${sentences}</p>
  </figure>`
}

/** @param {number | null | undefined} value @param {(value: number) => string} format */
const toldOf = (value, format) => (value === null || value === undefined ? text.none : format(value))

/** @param {string} name @param {(number | null)[]} values @param {(value: number) => string} format */
function sentenceOf(name, values, format) {
  const known = values.filter((value) => value !== null)
  return known.length === 0
    ? text.plot.nothing(name)
    : text.plot.sentence(
        name,
        format(known.at(-1) ?? 0),
        format(known.reduce((most, value) => Math.max(most, value), 0))
      )
}

/**
 * @param {Line[]} lines
 * @param {HTMLElement} element
 * @param {{ current: { times: number[], format: (value: number) => string } }} latest
 * @param {Shared} shared
 * @returns {uPlot.Options}
 */
function optionsFor(lines, element, latest, { zoom, at }) {
  const [ink, grid] = [styled(element, '--muted'), styled(element, '--line')]
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false } }
  return {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    padding: [8, 22, 0, 0],
    cursor: { sync: { key: 'console' }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: {
      x: { range: () => zoom.peek() ?? [latest.current.times[0] ?? 0, latest.current.times.at(-1) ?? 1] },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] }
    },
    axes: [
      {
        ...axis,
        size: (_plot, values) => (values?.some((each) => each?.includes('\n')) ? 46 : 28),
        values: (plot, splits, _axis, _space, apart) => axisTimes(splits, apart, plot.scales.x?.min ?? 0)
      },
      {
        ...axis,
        size: 64,
        values: (_plot, splits) => splits.map((each) => (each === 0 ? '0' : latest.current.format(each)))
      }
    ],
    series: [
      {},
      ...lines.map(({ name }, index) => ({
        label: name,
        stroke: styled(element, `--line-${index % colours}`),
        width: 1.75,
        points: { size: 5, filter: alone }
      }))
    ],
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width >= shortestDragPx) zoom.value = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        }
      ],
      setCursor: [({ cursor: { idx } }) => void (at.value = idx ?? null)],
      ready: [({ over }) => over.addEventListener('dblclick', () => (zoom.value = null))]
    }
  }
}
