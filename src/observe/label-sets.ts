/** Gives the name under which a resource is counted: `order:42` → `order:*`. */
export type NormalizeResource = (resource: string) => string

/** What a series of figures is about. Without a normaliser there is no resource. */
export interface Labels {
  readonly space?: string
  readonly store?: string
  readonly primitive?: string
  readonly resource?: string
}

type PreparedLabels = { readonly [Label in keyof Labels]?: string | undefined }

/** A normaliser that leaves numbers in the names must not eat the memory. */
export const MOST_LABEL_SETS = 1000
const OTHER = 'other'

/** The series by their labels, in bounded number: the rest is counted under `other`. */
export class LabelSets<Series> {
  readonly #normalize: NormalizeResource | undefined
  readonly #make: (labels: Labels) => Series
  readonly #series = new Map<string, Series>()

  constructor(normalize: NormalizeResource | undefined, make: (labels: Labels) => Series) {
    this.#normalize = normalize
    this.#make = make
  }

  values(): Iterable<Series> {
    return this.#series.values()
  }

  /** `resource` is the name as it is locked; null: there is none to tell. */
  of({ space, store, primitive }: Labels, resource: string | null): Series {
    const counted = resource === null ? undefined : countedName(this.#normalize, resource)
    return this.#get(space, store, primitive, counted)
  }

  /** Makes a series, with the labels of a series of another kind. */
  prepare({ space, store, primitive, resource }: PreparedLabels): void {
    this.#get(space, store, primitive, resource)
  }

  #get(
    space: string | undefined,
    store: string | undefined,
    primitive: string | undefined,
    counted: string | undefined,
  ): Series {
    const key = `${space}\n${store}\n${primitive}\n${counted}`
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const isFull = this.#series.size >= MOST_LABEL_SETS && (space !== OTHER || counted !== OTHER)
    if (!isFull) return this.#add(key, labelsOf(space, store, primitive, counted))
    const rest = labelsOf(space && OTHER, store, primitive, counted && OTHER)
    const restKey = `${rest.space}\n${store}\n${primitive}\n${rest.resource}`
    return this.#series.get(restKey) ?? this.#add(restKey, rest)
  }

  #add(key: string, labels: Labels): Series {
    const series = this.#make(labels)
    this.#series.set(key, series)
    return series
  }
}

/** A normaliser that fails must not lose the figure, nor end the process. */
export function countedName(normalize: NormalizeResource | undefined, resource: string): string | undefined {
  if (!normalize) return undefined
  try {
    const name: unknown = normalize(resource)
    return typeof name === 'string' ? name : OTHER
  } catch {
    return OTHER
  }
}

function labelsOf(
  space: string | undefined,
  store: string | undefined,
  primitive: string | undefined,
  resource: string | undefined,
): Labels {
  return {
    ...(space === undefined ? {} : { space }),
    ...(store === undefined ? {} : { store }),
    ...(primitive === undefined ? {} : { primitive }),
    ...(resource === undefined ? {} : { resource }),
  }
}
