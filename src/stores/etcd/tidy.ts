import type { Operation } from '../../drivers/etcd/index.js'
import type { EtcdLine } from './line.js'
import type { EtcdNames } from './names.js'
import type { EtcdRow } from './rows.js'

/** Removes what tells about claims that have all left the line, when `leaving` leaves it, too. */
export function tidyOperations(
  names: EtcdNames,
  { resource, rows }: EtcdLine,
  leaving: EtcdRow,
): Operation[] {
  const { jumpRevision, pin, pinRevision } = rows
  if (jumpRevision === 0 && pin?.heldUpTo === undefined) return []
  const isOlder = (revision: number) =>
    rows.claims.some((row) => row.key !== leaving.key && row.createRevision <= revision)
  const operations: Operation[] = []
  if (jumpRevision > 0 && !isOlder(jumpRevision))
    operations.push(ifUnchanged(names.jump(resource), jumpRevision, null))
  if (pin?.heldUpTo !== undefined && !isOlder(pin.heldUpTo)) {
    const { declared, capacity, isOver } = pin
    const value = isOver ? null : JSON.stringify({ declared, capacity })
    operations.push(ifUnchanged(names.pin(resource), pinRevision, value))
  }
  return operations
}

function ifUnchanged(key: string, revision: number, value: string | null): Operation {
  const change: Operation = value === null ? { type: 'delete', key } : { type: 'put', key, value }
  return {
    type: 'txn',
    compare: [{ key, target: 'mod', is: '=', value: revision }],
    success: [change],
  }
}
