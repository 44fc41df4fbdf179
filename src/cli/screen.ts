import { clip } from './width.js'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_REST = '\u001b[J'
const REVERSE = '\u001b[7m'
const PLAIN = '\u001b[0m'
const CTRL_Z = '\u001a'

/** A line of the screen; the heading is shown in reverse. */
export interface ScreenLine {
  readonly text: string
  readonly isHeading?: boolean
}

/**
 * The terminal while a live view has it: the alternate screen, without a cursor, keys one by one.
 * However the process ends, short of SIGKILL, the terminal is as it was before.
 */
export class Screen {
  readonly #output = process.stdout
  readonly #input = process.stdin
  readonly #onKey: (key: string) => void
  readonly #onResize: () => void
  readonly #restore = (): void => this.#leave()
  readonly #resume = (): void => {
    this.#enter()
    this.#onResize()
  }
  #isEntered = false

  constructor(listener: { onKey(key: string): void; onResize(): void }) {
    this.#onKey = listener.onKey
    this.#onResize = listener.onResize
  }

  get rows(): number {
    return Math.max(1, this.#output.rows || 24)
  }

  get columns(): number {
    return Math.max(1, this.#output.columns || 80)
  }

  open(): void {
    // Also after an exception that nobody catches.
    process.on('exit', this.#restore)
    process.on('SIGCONT', this.#resume)
    this.#output.on('resize', this.#onResize)
    this.#input.on('data', this.#read)
    this.#enter()
  }

  close(): void {
    this.#leave()
    process.off('exit', this.#restore)
    process.off('SIGCONT', this.#resume)
    this.#output.off('resize', this.#onResize)
    this.#input.off('data', this.#read)
    this.#input.pause()
  }

  /** Draws in place, so that nothing flickers. Lines that do not fit are cut. */
  draw(lines: readonly ScreenLine[]): void {
    if (!this.#isEntered) return
    const shown = lines.slice(0, this.rows).map(({ text, isHeading }) => {
      const line = clip(text, this.columns)
      return isHeading ? `${REVERSE}${line.padEnd(this.columns)}${PLAIN}` : `${line}${CLEAR_LINE}`
    })
    this.#output.write(HOME + shown.join('\r\n') + CLEAR_REST)
  }

  readonly #read = (bytes: Buffer): void => {
    for (const key of keysOf(bytes.toString())) {
      if (key === CTRL_Z) this.#suspend()
      else this.#onKey(key)
    }
  }

  /** As the terminal would do itself, were its keys not read one by one. */
  #suspend(): void {
    this.#leave()
    process.kill(process.pid, 'SIGTSTP')
  }

  #enter(): void {
    if (this.#isEntered) return
    this.#isEntered = true
    if (this.#input.isTTY) {
      this.#input.setRawMode(true)
      this.#input.resume()
    }
    this.#output.write(ENTER)
  }

  #leave(): void {
    if (!this.#isEntered) return
    this.#isEntered = false
    if (this.#input.isTTY) this.#input.setRawMode(false)
    this.#output.write(LEAVE)
  }
}

/** Several keys may come at once; an arrow is a sequence. */
function keysOf(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal sends these
  return text.match(/\u001b\[[0-9;]*[A-Za-z~]|[\s\S]/g) ?? []
}
