import { render } from 'preact'
import { App } from './app.js'
import { applyTheme, storedTheme } from './theme.js'

applyTheme(storedTheme())
const place = document.getElementById('app')
if (place) render(<App />, place)
