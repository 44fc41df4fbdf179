import { chmodSync, mkdirSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { checkCommand } from '../../src/cli/command.js'
import { Bench } from './processes.js'

/** Root may look into every folder. */
function asOrdinaryUser(work: () => void): void {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    work()
  } finally {
    process.seteuid?.(0)
  }
}

/** A folder that nobody may look into, and then those of the system. */
function pathWithClosedFolder(): void {
  const closed = new Bench().path('closed')
  mkdirSync(closed)
  chmodSync(closed, 0)
  const { PATH: before } = process.env
  process.env['PATH'] = `${closed}:/usr/bin:/bin`
  onTestFinished(() => {
    chmodSync(closed, 0o700)
    process.env['PATH'] = before
  })
}

test('a folder of the PATH that the user may not look into is passed over, as in shells', () => {
  pathWithClosedFolder()
  asOrdinaryUser(() => {
    expect(() => checkCommand('env')).not.toThrow()
    expect(() => checkCommand('nosuch-command')).toThrow('nosuch-command: command not found')
  })
})
