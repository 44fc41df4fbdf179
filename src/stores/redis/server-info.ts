import type { Master } from './driver.js'

export async function infoOf(master: Master): Promise<ReadonlyMap<string, string>> {
  const lines = String(await master.command('INFO')).split(/\r?\n/)
  return new Map(
    lines.filter((line) => line.includes(':')).map((line) => line.split(/:(.*)/s) as [string, string]),
  )
}

/** null: the user may not read it. */
export async function configOf(master: Master, name: string): Promise<string | null> {
  try {
    const reply = await master.command('CONFIG', 'GET', name)
    return Array.isArray(reply) ? String(reply[1]) : String((reply as Record<string, unknown>)[name])
  } catch {
    return null
  }
}
