// What the charts have in common. Each brings its own surface, and colours for light and dark, so
// that it can be read on any page: a browser asks the image for the scheme that the page has.

export const WIDTH = 480
export const HEIGHT = 354

const STYLE = `text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--text)}
.title{font-size:17px;font-weight:600}.small{font-size:13px}.muted{fill:var(--muted)}.strong{font-weight:600}
.good{fill:var(--good)}.bad{fill:var(--bad)}.gray{fill:var(--gray)}.line{fill:none;stroke-width:2.5;stroke-linejoin:round}
.line.good{fill:none;stroke:var(--good)}.line.bad{fill:none;stroke:var(--bad)}
.grid{stroke:var(--grid)}.axis{stroke:var(--muted)}.surface{fill:var(--surface);stroke:var(--grid)}.on{fill:var(--surface)}
svg{--surface:#fff;--grid:#dfe3e8;--text:#1f2328;--muted:#59636e;--good:#0b7a6e;--bad:#c2410c;--gray:#8b949e}
@media(prefers-color-scheme:dark){svg{--surface:#1b1f24;--grid:#3a414a;--text:#e6edf3;--muted:#a3adb8;--good:#4fd1bd;--bad:#ff9a66;--gray:#7d8894}}`

/** `about`: what the picture shows, for readers who cannot see it. */
export function chart({ title, subtitle, about }, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escaped(about)}">
<style>${STYLE}</style>
<rect class="surface" x=".5" y=".5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="10"/>
${text(20, 32, title, 'title')}
${text(20, 53, subtitle, 'small muted')}
${parts.flat(Number.POSITIVE_INFINITY).join('\n')}
</svg>
`
}

export function text(x, y, content, classes = '', anchor = 'start') {
  const attributes = [
    classes && ` class="${classes}"`,
    anchor !== 'start' && ` text-anchor="${anchor}"`,
  ].filter(Boolean)
  return `<text x="${round(x)}" y="${round(y)}"${attributes.join('')}>${escaped(String(content))}</text>`
}

export function rect(x, y, width, height, classes, more = '') {
  return `<rect class="${classes}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"${more}/>`
}

export function line(x1, y1, x2, y2, classes, more = '') {
  return `<path class="${classes}" d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}"${more}/>`
}

/** A line through points that are given as [x, y]. */
export function curve(points, classes) {
  return `<path class="line ${classes}" d="M${points.map(([x, y]) => `${round(x)} ${round(y)}`).join('L')}"/>`
}

export function thousands(number) {
  return number.toLocaleString('en')
}

function round(number) {
  return Math.round(number * 10) / 10
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
