// What somebody at the console waits for, in a real browser: how long until the first page is there and takes input,
// how smoothly calls pass on the page Live while there are 200 of them a second, and how smoothly a plot of 100,000 points
// is zoomed into. It fails where a figure is not what it has to be. `npm run bench -- --only console`.

import type { Page } from 'playwright-core'
import { consoleRig, type ConsoleRig } from '../test/console/rig.ts'
import { isBusy } from './cpu.ts'
import { median, quantile } from './figures.ts'
import type { Section } from './report.ts'

const openings = 5
const callsPerSecond = 200
const tickMs = 50
const watchedMs = 10_000
const points = 100_000

/** What people have to get: at least, or at most. A screen shows 60 frames a second. */
const bounds: Readonly<Record<string, { readonly least?: number; readonly most?: number }>> = {
  firstPageKiB: { most: 150 },
  interactiveMs: { most: 1_000 },
  // Of those that were sent: what is drawn five times a second is counted a little later.
  arrivedPerSecond: { least: 0.95 * callsPerSecond },
  framesPerSecond: { least: 59 },
  plotFramesPerSecond: { least: 59 }
}

/** Runs before anything of the page: when its parts came, and what kept it from taking input meanwhile. */
const watched = `(() => {
  globalThis.seen = { longTasks: [] }
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) seen.longTasks.push([startTime, duration])
  }).observe({ type: 'longtask', buffered: true })
  const look = () => {
    if (seen.pages === undefined && document.querySelector('nav a')) seen.pages = performance.now()
    if (seen.plots === undefined && document.querySelector('.plot canvas')) seen.plots = performance.now()
    if (seen.plots === undefined) requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})()`

interface Seen {
  readonly pages: number
  readonly plots: number
  readonly longTasks: ReadonlyArray<readonly [at: number, ms: number]>
  /** All that it took, answers of the API included, compressed as they were. */
  readonly bytes: number
  /** Of the thread that the page runs on, until then: it holds still where the machine is busy. */
  readonly cpuMs: number
}

/**
 * Times of all frames, and what blocked for longer than 50 ms between them.
 * @param each done in each frame; `part`: of the time, how much has gone
 */
const framesOf = (ms: number, each = ''): string => `new Promise((resolve) => {
  const frames = []
  const before = seen.longTasks.length
  const frame = (now) => {
    frames.push(now)
    const part = (now - frames[0]) / ${ms}
    ${each}
    if (part < 1) requestAnimationFrame(frame)
    else resolve({ frames, longTasks: seen.longTasks.slice(before) })
  }
  requestAnimationFrame(frame)
})`

interface Frames {
  readonly frames: readonly number[]
  readonly longTasks: readonly unknown[]
}

/** From each frame to the next. */
function between({ frames }: Frames): { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number } {
  const ms = frames.slice(1).map((at, index) => at - (frames[index] ?? at))
  const all = ms.reduce((sum, each) => sum + each, 0)
  return { perSecond: (ms.length * 1_000) / all, p50Ms: median(ms), p99Ms: quantile(ms, 0.99) }
}

/** The plot of the pages, over all of one, with so many points. */
const plotted = `(async () => {
  const [{ h, render }, { signal }, { Plot }] = await Promise.all(
    ['preact', '@preact/signals', '/console/parts/plot.js'].map((name) => import(name)))
  const times = Array.from({ length: ${points} }, (_, at) => 1_700_000_000 + at)
  const values = times.map((_, at) => 100 + 50 * Math.sin(at / 700) + ((at * 7_919) % 31))
  const [zoom, at, mark] = [null, null, null].map((each) => signal(each))
  globalThis.zoomTo = (from, to) => (zoom.value = [from, to].map((part) => times[Math.round(part * (times.length - 1))]))
  const place = document.querySelector('main')
  place.replaceChildren()
  render(h(Plot, { title: '', times, lines: [{ name: '', values }], format: String, shared: { zoom, at, mark } }), place)
})()`

/** Deeper and deeper into the middle, then across with a tenth of it in sight. */
const zoomed = `part < 0.5
  ? zoomTo(0.99 * part, 1 - 0.99 * part)
  : zoomTo(1.8 * (part - 0.5), Math.min(1, 1.8 * (part - 0.5) + 0.1))`

interface Developer {
  send(method: 'Performance.getMetrics'): Promise<{ metrics: Array<{ name: string; value: number }> }>
}

async function cpuMs(developer: Developer): Promise<number> {
  const { metrics } = await developer.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000
}

async function developerOf(page: Page) {
  const developer = await page.context().newCDPSession(page)
  await developer.send('Performance.enable', { timeDomain: 'threadTicks' })
  return developer
}

/** Milliseconds from the request for the page, nothing of it in the cache. */
async function opened(rig: ConsoleRig): Promise<Seen> {
  const { page } = await rig.signedIn('overview')
  await page.addInitScript(watched)
  const developer = await developerOf(page)
  await developer.send('Network.enable')
  await developer.send('Network.setCacheDisabled', { cacheDisabled: true })
  const before = await cpuMs(developer)
  await page.reload()
  await page.locator('.plot canvas').first().waitFor()
  await page.evaluate('new Promise(requestAnimationFrame)')
  const spent = await cpuMs(developer)
  const entries = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
  const bytes = await page.evaluate<number>(`${entries}.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`)
  const seen = await page.evaluate<Omit<Seen, 'cpuMs' | 'bytes'>>('seen')
  return { ...seen, bytes, cpuMs: spent < before ? spent : spent - before }
}

/** It takes input once the pages can be chosen and nothing blocks. */
const interactiveOf = ({ pages, plots, longTasks }: Seen): number =>
  longTasks.reduce((latest, [at, ms]) => (at < plots ? Math.max(latest, at + ms) : latest), pages)

async function livePage(rig: ConsoleRig): Promise<Page> {
  const { page } = await rig.signedIn('live')
  await page.addInitScript(watched)
  await page.reload()
  await page.getByText('Listening').waitFor()
  return page
}

/** At a fixed rate, however long each takes. @returns stops it, and says how many there were */
function traffic(rig: ConsoleRig): () => number {
  let calls = 0
  const timer = setInterval(() => {
    for (let each = 0; each < (callsPerSecond * tickMs) / 1_000; each++) {
      calls++
      void rig.ada.request('tools/call', { name: 'tickets__echo', arguments: { calls } }).catch(() => {})
    }
  }, tickMs)
  return () => {
    clearInterval(timer)
    return calls
  }
}

/** Frames of a plot that is zoomed into while the mouse goes over it, and what the page computes for each. */
async function plotFrames(rig: ConsoleRig): Promise<Frames & { readonly cpuMsPerFrame: number }> {
  const { page } = await rig.signedIn('overview')
  await page.addInitScript(watched)
  await page.reload()
  await page.locator('.plot canvas').first().waitFor()
  await page.evaluate(plotted)
  const box = await page.locator('main .u-over').boundingBox()
  const { x = 0, y = 0, width = 0 } = box ?? {}
  const developer = await developerOf(page)
  const before = await cpuMs(developer)
  const watching = page.evaluate<Frames>(framesOf(watchedMs, zoomed))
  const [seen] = await Promise.all([watching, page.mouse.move(x + width, y + 40, { steps: 400 })])
  return { ...seen, cpuMsPerFrame: ((await cpuMs(developer)) - before) / seen.frames.length }
}

const titles: Readonly<Record<string, readonly [what: string, unit: string]>> = {
  firstPageKiB: ['first page, with all that it takes, compressed', 'KiB'],
  interactiveMs: ['it takes input after', 'ms'],
  plotsMs: ['its plots are drawn after', 'ms'],
  openingCpuMs: ['CPU time of the page until then', 'ms'],
  callsPerSecond: ['calls that are made while the page Live is open', '/s'],
  arrivedPerSecond: ['of them, those that arrive in the page', '/s'],
  framesPerSecond: ['frames meanwhile', '/s'],
  frameP50Ms: ['from frame to frame, half', 'ms'],
  frameP99Ms: ['99 % of them', 'ms'],
  liveCpuMsPerSecond: ['CPU time of the page meanwhile', 'ms/s'],
  longTasks: ['times that it blocked for more than 50 ms', ''],
  plotFramesPerSecond: [`frames while ${points.toLocaleString('en')} points are zoomed into`, '/s'],
  plotFrameP99Ms: ['from frame to frame, 99 % of them', 'ms'],
  plotCpuMsPerFrame: ['CPU time of the page for each frame', 'ms'],
  plotLongTasks: ['times that it blocked for more than 50 ms', '']
}

const isMissed = (name: string, value: number): boolean => {
  const { least = -Infinity, most = Infinity } = bounds[name] ?? {}
  return !(value >= least && value <= most)
}

/** @returns figures for machines, a table, and which figures are not what they have to be */
export async function consoleFigures(): Promise<{
  readonly figures: Readonly<Record<string, number>>
  readonly section: Section
  readonly missed: readonly string[]
}> {
  const wasBusy = isBusy()
  const ends: Array<() => unknown> = []
  try {
    const rig = await consoleRig({ teardown: (end: () => unknown) => void ends.unshift(end) })
    await rig.traffic()
    const seen: Seen[] = []
    for (let round = 0; round < openings; round++) seen.push(await opened(rig))
    const page = await livePage(rig)
    const stop = traffic(rig)
    await page.getByRole('table', { name: 'Calls, the newest first' }).waitFor()
    const arrived = async () => Number(await page.locator('[data-arrived]').getAttribute('data-arrived'))
    const developer = await developerOf(page)
    const before = await cpuMs(developer)
    const arrivedBefore = await arrived()
    const startedAt = performance.now()
    const live = await page.evaluate<Frames>(framesOf(watchedMs))
    const tookMs = performance.now() - startedAt
    const arrivedMeanwhile = (await arrived()) - arrivedBefore
    const spent = (await cpuMs(developer)) - before
    const rate = (stop() * 1_000) / tookMs
    const ofLive = between(live)
    const plot = await plotFrames(rig)
    const ofPlot = between(plot)
    const figures: Record<string, number> = {
      firstPageKiB: median(seen.map(({ bytes }) => bytes)) / 1024,
      interactiveMs: median(seen.map(interactiveOf)),
      plotsMs: median(seen.map(({ plots }) => plots)),
      openingCpuMs: median(seen.map((each) => each.cpuMs)),
      callsPerSecond: rate,
      arrivedPerSecond: (arrivedMeanwhile * 1_000) / tookMs,
      liveCpuMsPerSecond: (spent * 1_000) / tookMs,
      framesPerSecond: ofLive.perSecond,
      frameP50Ms: ofLive.p50Ms,
      frameP99Ms: ofLive.p99Ms,
      longTasks: live.longTasks.length,
      plotFramesPerSecond: ofPlot.perSecond,
      plotFrameP99Ms: ofPlot.p99Ms,
      plotCpuMsPerFrame: plot.cpuMsPerFrame,
      plotLongTasks: plot.longTasks.length
    }
    const missed = Object.keys(figures).filter((name) => isMissed(name, figures[name] ?? Number.NaN))
    const rows = Object.entries(titles).map(([name, [what, unit]]) => {
      const { least, most } = bounds[name] ?? {}
      const bound = least === undefined ? (most === undefined ? '' : `at most ${most}`) : `at least ${least}`
      return [what, `${figures[name]?.toFixed(1)} ${unit}`.trim(), bound, missed.includes(name) ? 'missed' : '']
    })
    const notes = wasBusy ? ['The machine had other work, which makes it slower.'] : []
    return { figures, missed, section: { head: ['the console', 'median', 'bound', ''], rows, notes } }
  } finally {
    for (const end of ends) await end()
  }
}
