/** How the tables and routines of one schema are called: `holdfast_line`. */
export interface Names {
  readonly line: string
  readonly claim: string
  readonly robbed: string
  readonly state: string
  readonly version: string
  /** A routine. */
  routine(name: string): string
}

export function namesOf(prefix: string): Names {
  const quoted = (name: string): string => `\`${prefix}_${name}\``
  return {
    line: quoted('line'),
    claim: quoted('claim'),
    robbed: quoted('robbed'),
    state: quoted('state'),
    version: quoted('version'),
    routine: quoted,
  }
}
