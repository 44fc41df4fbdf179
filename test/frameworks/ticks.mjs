// Loaded before a program with --import: prints each attempt to run a job, and whether it ran.
import { tracingChannel } from 'node:diagnostics_channel'

tracingChannel('holdfast:acquire').asyncEnd.subscribe(({ primitive }) => {
  if (primitive === 'once') console.log('tick')
})
