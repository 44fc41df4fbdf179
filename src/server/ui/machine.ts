// The browser's clock, timers and chance. The page runs in no Env: everything else in it asks here.

export function nowMs(): number {
  return Date.now()
}

/** Runs it once, later. Returns what calls it off. */
export function later(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Runs it again and again. Returns what ends that. */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, ms)
  return () => clearInterval(timer)
}

/** From 0 up to, and without, 1. */
export function chance(): number {
  return Math.random()
}
