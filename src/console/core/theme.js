// The theme: light or dark as the system says, until the user chooses one.

import { signal } from '@preact/signals'

const themeKey = 'gatehouse-console-theme'
const system = matchMedia('(prefers-color-scheme: dark)')

const chosen = signal(localStorage.getItem(themeKey))
export const isDark = signal(false)

const follow = () => {
  isDark.value = chosen.value === null ? system.matches : chosen.value === 'dark'
  document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light'
}
system.addEventListener('change', follow)
follow()

export function switchTheme() {
  chosen.value = isDark.value ? 'light' : 'dark'
  localStorage.setItem(themeKey, chosen.value)
  follow()
}
