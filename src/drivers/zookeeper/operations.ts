import type { JuteReader, JuteWriter } from './jute.js'
import { CreateFlag, Op } from './protocol.js'
import { type Acl, readAcls, readStat, type Stat, writeAcls } from './records.js'
import type { WatchKind } from './watches.js'

/** How long a node lives, and whether the server adds a number to its name. */
export type CreateMode =
  | 'persistent'
  | 'persistentSequential'
  | 'ephemeral'
  | 'ephemeralSequential'
  | 'container'

/** One kind of request: how it is written and how its answer is read. Paths are the server's. */
export interface Operation<T> {
  readonly op: number
  /** If the answer to a write is lost, it is unknown whether it was carried out. */
  readonly isWrite: boolean
  write(out: JuteWriter): void
  read(input: JuteReader): T
  /** The kind of watch that it sets if it succeeds. */
  readonly watch?: WatchKind
  /** The answer if there is no node, where that is not an error. */
  readonly absent?: { readonly value: T; readonly watch: WatchKind }
}

const FLAGS: Readonly<Record<CreateMode, number>> = {
  persistent: 0,
  persistentSequential: CreateFlag.sequential,
  ephemeral: CreateFlag.ephemeral,
  ephemeralSequential: CreateFlag.ephemeral | CreateFlag.sequential,
  container: CreateFlag.container,
}

export interface CreateFields {
  readonly path: string
  readonly data: Uint8Array
  readonly acl: readonly Acl[]
  readonly mode: CreateMode
}

/** Containers have a create operation of their own. */
export function createOp(mode: CreateMode): number {
  return mode === 'container' ? Op.createContainer : Op.create2
}

export function writeCreate(out: JuteWriter, { path, data, acl, mode }: CreateFields): void {
  out.string(path).buffer(data)
  writeAcls(out, acl)
  out.int(FLAGS[mode])
}

export function readCreated(input: JuteReader): { path: string; stat: Stat } {
  return { path: input.string(), stat: readStat(input) }
}

/** `toClient`: the path as the client knows it. */
export function create(
  fields: CreateFields,
  toClient: (path: string) => string,
): Operation<{ path: string; stat: Stat }> {
  return {
    op: createOp(fields.mode),
    isWrite: true,
    write: (out) => writeCreate(out, fields),
    read: (input) => ({ path: toClient(input.string()), stat: readStat(input) }),
  }
}

export function remove(path: string, version: number): Operation<object> {
  return { op: Op.delete, isWrite: true, write: (out) => out.string(path).int(version), read: nothing }
}

export function setData(path: string, data: Uint8Array, version: number): Operation<{ stat: Stat }> {
  return {
    op: Op.setData,
    isWrite: true,
    write: (out) => out.string(path).buffer(data).int(version),
    read: (input) => ({ stat: readStat(input) }),
  }
}

export function exists(path: string, watch: boolean): Operation<{ stat: Stat | null }> {
  return {
    op: Op.exists,
    isWrite: false,
    write: (out) => out.string(path).bool(watch),
    read: (input) => ({ stat: readStat(input) }),
    watch: 'data',
    absent: { value: { stat: null }, watch: 'exists' },
  }
}

export function getData(path: string, watch: boolean): Operation<{ data: Buffer; stat: Stat }> {
  return {
    op: Op.getData,
    isWrite: false,
    write: (out) => out.string(path).bool(watch),
    read: (input) => ({ data: input.buffer(), stat: readStat(input) }),
    watch: 'data',
  }
}

export function getChildren(path: string, watch: boolean): Operation<{ children: string[]; stat: Stat }> {
  return {
    op: Op.getChildren2,
    isWrite: false,
    write: (out) => out.string(path).bool(watch),
    read: (input) => ({ children: input.vector(() => input.string()), stat: readStat(input) }),
    watch: 'children',
  }
}

export function getAcl(path: string): Operation<{ acl: Acl[]; stat: Stat }> {
  return {
    op: Op.getAcl,
    isWrite: false,
    write: (out) => out.string(path),
    read: (input) => ({ acl: readAcls(input), stat: readStat(input) }),
  }
}

export function setAcl(path: string, acl: readonly Acl[], version: number): Operation<{ stat: Stat }> {
  return {
    op: Op.setAcl,
    isWrite: true,
    write(out) {
      out.string(path)
      writeAcls(out, acl)
      out.int(version)
    },
    read: (input) => ({ stat: readStat(input) }),
  }
}

export function sync(path: string): Operation<object> {
  return { op: Op.sync, isWrite: false, write: (out) => out.string(path), read: nothing }
}

export function closeSession(): Operation<object> {
  return { op: Op.closeSession, isWrite: true, write: () => {}, read: nothing }
}

function nothing(): object {
  return {}
}
