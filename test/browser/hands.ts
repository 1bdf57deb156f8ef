// A person before a page, by the mouse or by the keyboard alone, so that one task is done both ways.

import type { Locator, Page } from 'playwright-core'

export interface Hand {
  readonly name: 'mouse' | 'keyboard'
  /** A button, a link, a box to tick. */
  press(target: Locator): Promise<void>
  /** In place of what is there. */
  write(target: Locator, text: string): Promise<void>
  /** @param option its whole text */
  choose(target: Locator, option: string): Promise<void>
  /** Chooses the later part of what a plot shows. */
  zoom(plot: Locator): Promise<void>
  /** Leaves the dialog that is open. */
  close(page: Page): Promise<void>
}

const replaced = async (target: Locator, text: string): Promise<void> => {
  const { keyboard } = target.page()
  await keyboard.press('ControlOrMeta+A')
  await keyboard.type(text)
}

const mouse: Hand = {
  name: 'mouse',
  press: (target) => target.click(),
  async write(target, text) {
    await target.click()
    await replaced(target, text)
  },
  // The browser draws the list of a choice outside of the page, where no mouse of a test gets.
  async choose(target, option) {
    await target.click()
    await target.selectOption(option)
    await target.page().keyboard.press('Escape')
  },
  async zoom(plot) {
    const { x = 0, y = 0, width = 0 } = (await plot.locator('.u-over').boundingBox()) ?? {}
    const { mouse: pointer } = plot.page()
    await pointer.move(x + width - 150, y + 40)
    await pointer.down()
    await pointer.move(x + width - 10, y + 40, { steps: 4 })
    await pointer.up()
  },
  close: (page) => page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
}

/** More than any page has. */
const maxSteps = 300

/** By Tab alone, from wherever the focus is. @throws Error where Tab does not get there */
async function reach(target: Locator): Promise<void> {
  await target.waitFor()
  const focused = target.and(target.page().locator(':focus'))
  for (let steps = 0; steps < maxSteps; steps++) {
    if ((await focused.count()) > 0) return
    await target.page().keyboard.press('Tab')
  }
  throw new Error(`${maxSteps} times Tab do not lead to ${String(target)}`)
}

const keyboard: Hand = {
  name: 'keyboard',
  async press(target) {
    await reach(target)
    const isBox = (await target.getAttribute('type')) === 'checkbox'
    await target.page().keyboard.press(isBox ? 'Space' : 'Enter')
  },
  async write(target, text) {
    await reach(target)
    await replaced(target, text)
  },
  async choose(target, option) {
    await reach(target)
    await target.locator('option').getByText(option, { exact: true }).waitFor({ state: 'attached' })
    const all = await target.locator('option').allInnerTexts()
    await target.page().keyboard.press('Home')
    for (let at = 0; at < all.length; at++) {
      if ((await target.locator('option:checked').innerText()).trim() === option) return
      await target.page().keyboard.press('ArrowDown')
    }
    throw new Error(`no press of a key chooses ${option}: there are ${all.join(', ')}`)
  },
  async zoom(plot) {
    await reach(plot.getByRole('slider'))
    const { keyboard: keys } = plot.page()
    for (let steps = 0; steps < 10; steps++) await keys.press('Shift+ArrowLeft')
    await keys.press('Enter')
  },
  close: (page) => page.keyboard.press('Escape')
}

export const hands = [mouse, keyboard] as const
