import type { Operation } from '../../drivers/etcd/index.js'
import type { EtcdLine } from './line.js'
import type { EtcdNames } from './names.js'
import type { EtcdRow } from './rows.js'

/** Removes what tells about claims that have all left the line, when `leaving` leaves it, too. */
export function tidyOperations(names: EtcdNames, line: EtcdLine, leaving: EtcdRow): Operation[] {
  const { resource, rows } = line
  const { jumpRevision, pin, pinRevision } = rows
  if (jumpRevision === 0 && pin?.heldUpTo === undefined) return []
  const operations: Operation[] = []
  if (jumpRevision > 0 && !line.hasOlder(jumpRevision, leaving.key))
    operations.push(ifUnchanged(names.jump(resource), jumpRevision, null))
  if (pin?.heldUpTo !== undefined && !line.hasOlder(pin.heldUpTo, leaving.key)) {
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
