// What axe-core finds on a page, in a line each. It runs outside of the page's own policy, as an extension would.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/**
 * @param rules of these alone; not given: all
 * @returns rule, element and why, of each violation of WCAG 2.2 A and AA and of good practice
 */
export async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Half a megabyte, which a page keeps.
  if (await page.evaluate<boolean>('globalThis.axe === undefined'))
    await page.evaluate(`${await readFile(axePath, 'utf8')}; undefined`)
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary = '' }) => `${id} at ${target.join(' ')}: ${failureSummary.split('\n').at(-1)}`)
  )
}
