/**
 * How a line is stored. Every script, and `view.ts`, is made from these tables: nothing else knows
 * the order of the fields.
 *
 * A line is one hash. Field `#` is its head, in one of three forms; every other field is a claim
 * under its id.
 *
 *     #     FREE    nobody holds or waits
 *     #     SINGLE  one claim holds and nobody waits; the claim is part of the head and has no field
 *     #     QUEUE   all other cases
 *     <id>  CLAIM
 *
 * `-` means none. Times are whole microseconds of the line's own clock: the server's wall clock
 * plus OFFSET. OFFSET grows when the server's clock is set back, so that the line's clock never
 * goes back and no deadline moves away.
 */
export interface Form<Field extends string> {
  /** What a text of this form begins with. */
  readonly tag: string
  readonly fields: readonly Field[]
}

/**
 * What a claim keeps of the request. It ends every text that holds a claim, so short paths copy it
 * unread.
 */
const REQUEST = ['permits', 'capacity', 'maxHold', 'floor', 'block', 'client', 'info'] as const
/**
 * What changes most is in front. NEXT and PREV link the holders, then the waiters. FENCE is 0 for a
 * waiter.
 */
const CLAIM_FIELDS = ['next', 'prev', 'fence', 'expires', 'since', ...REQUEST] as const

/** LAST is the newest fence. TTL is the time until which the key lives. */
export const FREE = form('', ['last', 'ttl'])
/** SEEN is the newest time that the line has seen. */
export const SINGLE = form('', ['last', 'ttl', 'seen', 'id', ...CLAIM_FIELDS])
/**
 * USED permits are held; no hold ends before SOONEST. HEAD and TAIL are the first and the last
 * claim, FIRST is the first waiter. After a resize, claims may declare DECLARED, and PINNED counts.
 */
export const QUEUE = form('line ', [
  'last',
  'ttl',
  'seen',
  'offset',
  'used',
  'soonest',
  'capacity',
  'head',
  'first',
  'tail',
  'declared',
  'pinned',
])
export const CLAIM = form('', CLAIM_FIELDS)
/** A claim as a client sends it. */
export const CALL = form('', ['mode', 'id', 'lease', 'presence', ...REQUEST])

/**
 * The mode of a claim that joins only if fewer than `maxWaiters` wait: `q` and the number, a letter
 * for each digit. So it looks like `queue` to the path for a free line, which need not know it.
 */
export function boundedMode(maxWaiters: number): string {
  return `q${[...String(maxWaiters)].map((digit) => String.fromCharCode(FIRST_LETTER + Number(digit))).join('')}`
}

/** A Lua expression for the number in such a mode; nil: it is another mode. */
export function boundLua(mode: string): string {
  const digit = `function(letter) return string.byte(letter) - ${FIRST_LETTER} end`
  return `tonumber((string.gsub(string.match(${mode}, '^q([a-j]+)$') or '', '.', ${digit})))`
}

const FIRST_LETTER = 'a'.charCodeAt(0)

/** Every other field is a whole number. */
const TEXTS = new Set<string>([
  'next',
  'prev',
  'client',
  'info',
  'id',
  'mode',
  'head',
  'first',
  'tail',
  'declared',
  'pinned',
])

/**
 * The clocks of the years 2001 to 2286 count 16 digits of microseconds. So the fields of FREE and
 * SINGLE stand at fixed places, which the scripts read much faster than by a pattern. Texts with
 * other numbers are left to the patterns.
 */
const DIGITS = 16
export const COUNTER_END = 2 * DIGITS + 1
export const TTL_START = DIGITS + 2
export const ID_START = 3 * (DIGITS + 1) + 1
/** In SINGLE, counted from the end of the id. */
export const NO_LINKS = ' - - '
export const EXPIRES_START = NO_LINKS.length + DIGITS + 1
export const EXPIRES_END = EXPIRES_START + DIGITS - 1

function form<const Field extends string>(tag: string, fields: readonly Field[]): Form<Field> {
  return { tag, fields }
}

/**
 * Lua that reads fields of a text into new locals: `names` says into which. `=text` in place of a
 * name wants just that text, and `~pattern` what matches. `starts` names locals that get the place
 * where a field begins. All locals are nil if the text has another form.
 */
export function readLua<Field extends string>(
  { tag, fields }: Form<Field>,
  text: string,
  names: Partial<Record<Field, string>>,
  starts: Partial<Record<Field, string>> = {},
): string {
  const locals: string[] = []
  const end = 1 + fields.findLastIndex((field) => names[field] ?? starts[field])
  const parts = fields.slice(0, end).map((field, index) => {
    const [name, start] = [names[field], starts[field]]
    if (start) locals.push(start)
    const place = start ? '()' : ''
    // Nothing is read behind a place that comes last.
    return name === undefined && index === end - 1 ? place : place + patternOf(field, name, locals)
  })
  const isLastRead = names[fields[end - 1] as Field] !== undefined
  const close = !isLastRead ? '' : end === fields.length ? '$' : ' '
  return `local ${locals.join(', ')} = string.match(${text}, '^${tag}${parts.join(' ')}${close}')`
}

function patternOf(field: string, name: string | undefined, locals: string[]): string {
  if (name?.startsWith('=')) return name.slice(1).replace('-', '%-')
  if (name?.startsWith('~')) return name.slice(1)
  const pattern = field === 'info' ? '.*' : TEXTS.has(field) ? '%S+' : '%d+'
  if (name === undefined) return pattern
  locals.push(name)
  return `(${pattern})`
}

/** Lua that reads all fields of a text into locals of their own names. */
export function readAllLua<Field extends string>(form: Form<Field>, text: string): string {
  const names: Partial<Record<Field, string>> = {}
  for (const field of form.fields) names[field] = field
  return readLua(form, text, names)
}

/**
 * A Lua expression for a text of that form. `values` are expressions for texts, for the first
 * fields or for all; `rest` is the text of the others.
 */
export function textLua<Field extends string>(
  { tag, fields }: Form<Field>,
  values: Partial<Record<Field, string>>,
  rest?: string,
): string {
  const given = fields.slice(0, Object.keys(values).length).map((field) => {
    const value = values[field]
    if (value === undefined) throw new Error(`${field} is missing`)
    return value
  })
  if (given.length < fields.length && rest === undefined)
    throw new Error(`${fields[given.length]} is missing`)
  const parts = rest === undefined ? given : [...given, rest]
  // Literals are joined here: each piece costs the server time.
  return (tag === '' ? '' : `'${tag}' .. `).concat(parts.join(" .. ' ' .. ")).replaceAll("' .. '", '')
}

/** The same from numbers, and from `-` where there is none. */
export function formatLua<Field extends string>(
  { tag, fields }: Form<Field>,
  valueLua: (field: Field) => string,
): string {
  // A format would cut a text off at a zero byte.
  const formatted = fields.filter((field) => field !== 'info')
  const pattern = formatted.map((field) => (TEXTS.has(field) ? '%s' : '%.0f')).join(' ')
  const text = `string.format('${tag}${pattern}', ${formatted.map(valueLua).join(', ')})`
  return formatted.length === fields.length ? text : `${text} .. ' ' .. ${valueLua('info' as Field)}`
}

/** A Lua table of fields that were read into locals of their own names. */
export function tableLua<Field extends string>({ fields }: Form<Field>): string {
  return `{ ${fields.map((field) => `${field} = ${TEXTS.has(field) ? field : `tonumber(${field})`}`).join(', ')} }`
}

/** The fields of a text, for TypeScript; null: it has another form. */
export function parseFields<Field extends string>(
  { tag, fields }: Form<Field>,
  text: string,
): Readonly<Record<Field, string>> | null {
  if (!text.startsWith(tag)) return null
  // By hand: a list of thousands of lines is read with this.
  const found: Partial<Record<Field, string>> = {}
  let from = tag.length
  for (let index = 0; index < fields.length - 1; index++) {
    const to = text.indexOf(' ', from)
    if (to < 0) return null
    found[fields[index] as Field] = text.slice(from, to)
    from = to + 1
  }
  // Only the last field may have spaces in it.
  found[fields.at(-1) as Field] = text.slice(from)
  return found as Record<Field, string>
}
