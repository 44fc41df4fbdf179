/** The exit codes of `holdfast` itself; from sysexits.h where it has one. */
export const EXIT = {
  ok: 0,
  /** `break` found nothing to break, or no such waiter. */
  nothingHeld: 1,
  /** `doctor` found a fault; with `--strict`, or a risk. */
  findings: 1,
  /** EX_USAGE */
  usage: 64,
  /** EX_UNAVAILABLE: the store could not be reached or opened. */
  storeUnavailable: 69,
  /** EX_SOFTWARE: an unexpected error. */
  internal: 70,
  /** EX_TEMPFAIL: busy, too many wait, the wait timed out, or an operator cancelled it. */
  notAcquired: 75,
  holdLost: 76,
  notExecutable: 126,
  notFound: 127,
  /** 128 + n after signal n, as in shells. */
  signalled: 128,
} as const
