// Control of a plot by keyboard: how far each key moves the pointer, and which span is chosen.

/** @typedef {import('uplot')} uPlot */

/** By how many steps each key moves the pointer. @type {Record<string, number>} */
export const moves = {
  ...{ ArrowLeft: -1, ArrowDown: -1, PageDown: -10, Home: -Infinity },
  ...{ ArrowRight: 1, ArrowUp: 1, PageUp: 10, End: Infinity }
}
const nowhere = { left: -10, top: -10 }

/** The first and the last step that are shown. @param {number[]} times @param {[number, number] | null} zoom */
export function stepsWithin(times, zoom) {
  const [from, to] = zoom ?? [-Infinity, Infinity]
  const last = Math.max(
    0,
    times.findLastIndex((each) => each <= to)
  )
  const first = Math.max(
    0,
    times.findIndex((each) => each >= from)
  )
  return { first: Math.min(first, last), last }
}

/** @param {number[]} times @param {number} mark @param {number | null} at @returns {[from: number, to: number]} */
export function spanOf(times, mark, at) {
  const [one = 0, other = 0] = [times[mark], times[at ?? mark]]
  return [Math.min(one, other), Math.max(one, other)]
}

/**
 * Shows the pointer of the keyboard; plots show that of the mouse themselves.
 * @param {uPlot} plot @param {number[]} times @param {number | null} at
 */
export function point(plot, times, at) {
  if ((plot.cursor.idx ?? null) === at) return
  plot.setCursor(at === null ? nowhere : { left: plot.valToPos(times[at] ?? 0, 'x'), top: nowhere.top }, false)
}

/** @param {uPlot} plot @param {number[]} times @param {number | null} mark @param {number | null} at */
export function showChosen(plot, times, mark, at) {
  const [left = 0, right = 0] = mark === null ? [] : spanOf(times, mark, at).map((each) => plot.valToPos(each, 'x'))
  plot.setSelect({ left, top: 0, width: right - left, height: plot.over.clientHeight }, false)
}
