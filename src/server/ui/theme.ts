export type Theme = 'system' | 'light' | 'dark'

const KEY = 'holdfast-theme'
const ORDER: readonly Theme[] = ['system', 'light', 'dark']

/** What was chosen last. A browser may forbid to remember it. */
export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY) as Theme
    return ORDER.includes(stored) ? stored : 'system'
  } catch {
    return 'system'
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // Then it lasts as long as the page.
  }
}

export function themeAfter(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? 'system'
}
