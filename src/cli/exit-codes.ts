/** What `holdfast` exits with when the code is not the command's own; sysexits.h where it has a number. */
export const EXIT = {
  ok: 0,
  /** `break` found nothing to break. */
  nothingHeld: 1,
  /** `doctor` found a fault; with `--strict`, or a risk. */
  unwell: 1,
  /** EX_USAGE */
  usage: 64,
  /** EX_UNAVAILABLE: the store could not be reached or opened. */
  storeUnavailable: 69,
  /** EX_SOFTWARE: anything unforeseen. */
  internal: 70,
  /** EX_TEMPFAIL: busy, or the wait ran out. */
  notAcquired: 75,
  holdLost: 76,
  notExecutable: 126,
  notFound: 127,
  /** A signal n ends in 128 + n, as in shells. */
  signalled: 128,
} as const
