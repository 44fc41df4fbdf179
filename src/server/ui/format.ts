const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'm', ms: 60_000 },
  { name: 's', ms: 1000 },
] as const

/** `4 s`, `2 m 05 s`, `3 h 12 m`: at most two units, for a figure that counts each second. */
export function durationText(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1000)) * 1000
  const index = UNITS.findIndex((unit) => whole >= unit.ms)
  const unit = UNITS[index]
  if (!unit) return '0 s'
  const next = UNITS[index + 1]
  const count = Math.floor(whole / unit.ms)
  if (!next) return `${count} ${unit.name}`
  const rest = Math.floor((whole % unit.ms) / next.ms)
  return `${count} ${unit.name} ${String(rest).padStart(2, '0')} ${next.name}`
}

const WHOLE = new Intl.NumberFormat('en')

/** `10,000`. */
export function countText(count: number): string {
  return WHOLE.format(count)
}

/** `1 waiter`, `4 waiters`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`
}

/** `2026-11-17 18:51:06`, on the clock of the reader. */
export function timeText(iso: string): string {
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return iso
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}
