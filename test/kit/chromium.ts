// A real browser for the tests of the console: Debian's Chromium without a screen, driven by playwright-core.

import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'
import { ensureChromium } from '../../scripts/programs.ts'
import type { Teardown } from './until.ts'

export interface OpenedPage {
  readonly page: Page
  /** What the page said that it should not have: faults, refused scripts, failed requests. */
  readonly complaints: string[]
}

export interface TestBrowser {
  /** A page with cookies and storage of its own; the one before is closed. */
  open(url: string, options?: OpenOptions): Promise<OpenedPage>
}

export interface OpenOptions {
  readonly colorScheme?: 'light' | 'dark'
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly javaScriptEnabled?: boolean
  /** What the browser has kept of an earlier visit. */
  readonly state?: Exclude<BrowserContextOptions['storageState'], string>
}

export async function startChromium(t: Teardown): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: ensureChromium(),
    // As root there is no sandbox; in a container /dev/shm is small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
  })
  t.teardown(() => browser.close())
  let before: BrowserContext | undefined
  return {
    async open(url, { viewport = { width: 1280, height: 800 }, state, ...options } = {}) {
      await before?.close()
      const context = await browser.newContext({
        ...{ colorScheme: 'light', javaScriptEnabled: true, ...options, viewport, reducedMotion: 'reduce' },
        ...(state && { storageState: state }),
        // Of hosts on the web, as tests play them.
        ignoreHTTPSErrors: true,
        timezoneId: zoneAtNoon()
      })
      before = context
      const page = await context.newPage()
      // A busy machine takes its time; what never comes fails all the same.
      page.setDefaultTimeout(120_000)
      const complaints: string[] = []
      page.on('pageerror', (error) => complaints.push(String(error)))
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`)
      })
      await page.goto(url, { timeout: 120_000 })
      return { page, complaints }
    }
  }
}

/** A time zone in which it is between 12:00 and 13:00: the last hour is of today there, and the last day is of two. */
function zoneAtNoon(): string {
  const ahead = 12 - new Date().getUTCHours()
  // POSIX counts to the west.
  return `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`
}
