// What somebody at the console waits for, in a real browser: how long until the first page is there and takes input,
// and how smoothly calls pass on the page Live while there are 200 of them a second. `npm run bench -- --only console`.

import type { Page } from 'playwright-core'
import { consoleRig, type ConsoleRig } from '../test/console/rig.ts'
import { median, quantile } from './figures.ts'
import type { Section } from './report.ts'

const openings = 5
const callsPerSecond = 200
const tickMs = 50
const watchedMs = 10_000

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
  /** Of the thread that the page runs on, until then: it holds still where the machine is busy. */
  readonly cpuMs: number
}

/** Times of all frames, and what blocked for longer than 50 ms between them. */
const framesOf = (ms: number): string => `new Promise((resolve) => {
  const frames = []
  const before = seen.longTasks.length
  const frame = (now) => {
    frames.push(now)
    if (now - frames[0] < ${ms}) requestAnimationFrame(frame)
    else resolve({ frames, longTasks: seen.longTasks.slice(before) })
  }
  requestAnimationFrame(frame)
})`

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
  return { ...(await page.evaluate<Omit<Seen, 'cpuMs'>>('seen')), cpuMs: spent < before ? spent : spent - before }
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

/** @returns figures for machines, and a table */
export async function consoleFigures(): Promise<{
  readonly figures: Readonly<Record<string, number>>
  readonly section: Section
}> {
  const ends: Array<() => unknown> = []
  try {
    const rig = await consoleRig({ teardown: (end: () => unknown) => void ends.unshift(end) })
    await rig.traffic()
    const seen: Seen[] = []
    for (let round = 0; round < openings; round++) seen.push(await opened(rig))
    const page = await livePage(rig)
    const stop = traffic(rig)
    await page.locator('.calls').waitFor()
    const developer = await developerOf(page)
    const before = await cpuMs(developer)
    const startedAt = performance.now()
    const { frames, longTasks } = await page.evaluate<{ frames: number[]; longTasks: number[] }>(framesOf(watchedMs))
    const tookMs = performance.now() - startedAt
    const spent = (await cpuMs(developer)) - before
    const rate = (stop() * 1_000) / tookMs
    const between = frames.slice(1).map((at, index) => at - (frames[index] ?? at))
    const figures = {
      interactiveMs: median(seen.map(interactiveOf)),
      plotsMs: median(seen.map(({ plots }) => plots)),
      openingCpuMs: median(seen.map((each) => each.cpuMs)),
      callsPerSecond: rate,
      liveCpuMsPerSecond: (spent * 1_000) / tookMs,
      framesPerSecond: (between.length * 1_000) / between.reduce((sum, ms) => sum + ms, 0),
      frameP50Ms: median(between),
      frameP99Ms: quantile(between, 0.99),
      longTasks: longTasks.length
    }
    const row = (what: string, value: number, unit: string): string[] => [what, `${value.toFixed(1)} ${unit}`.trim()]
    const rows = [
      row('first page takes input after', figures.interactiveMs, 'ms'),
      row('its plots are drawn after', figures.plotsMs, 'ms'),
      row('CPU time of the page until then', figures.openingCpuMs, 'ms'),
      row('calls passing on the page Live', figures.callsPerSecond, '/s'),
      row('frames meanwhile', figures.framesPerSecond, '/s'),
      row('from frame to frame, half', figures.frameP50Ms, 'ms'),
      row('99 % of them', figures.frameP99Ms, 'ms'),
      row('CPU time of the page meanwhile', figures.liveCpuMsPerSecond, 'ms/s'),
      row('times that it blocked for more than 50 ms', figures.longTasks, '')
    ]
    return { figures, section: { head: ['the console', 'median'], rows, notes: [] } }
  } finally {
    for (const end of ends) await end()
  }
}
