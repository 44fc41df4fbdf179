import { type Duration, toMs } from '../../base/duration.js'
import { OPEN } from './acl.js'
import { parseServers } from './hosts.js'
import { type MultiFields, type MultiResult, multi } from './multi.js'
import * as operations from './operations.js'
import { requestTimeoutMs, sessionSettings, type ZooKeeperOptions } from './options.js'
import { Chroot, checkPath } from './paths.js'
import type { Acl, Stat } from './records.js'
import { type Answer, Request } from './request.js'
import { Session, type SessionInfo, type SessionListener } from './session.js'
import type { WatchEvent, WatchKind, WatchListener } from './watches.js'

/** Text, as UTF-8, or bytes. */
export type Data = string | Uint8Array

export interface CallOptions {
  /** How long this request waits for its answer. Default: the client's `requestTimeout`. */
  timeout?: Duration
}

export interface ReadOptions extends CallOptions {
  /** Told once, at the next change. Kept over reconnects; dropped without a word when the session ends. */
  watch?: WatchListener
}

export interface VersionOptions extends CallOptions {
  /** Fail with BAD_VERSION unless the node has this version. Default: any. */
  version?: number
}

export interface CreateOptions extends CallOptions {
  /** Default: empty. */
  data?: Data
  /** Default: everybody may do everything. */
  acl?: readonly Acl[]
  /** Default: `persistent`. */
  mode?: operations.CreateMode
}

/** One operation of a multi. `version`: fail unless the node has it. */
export type MultiOperation =
  | { type: 'create'; path: string; data?: Data; acl?: readonly Acl[]; mode?: operations.CreateMode }
  | { type: 'delete'; path: string; version?: number }
  | { type: 'set'; path: string; data: Data; version?: number }
  | { type: 'check'; path: string; version?: number }

const ANY_VERSION = -1

/**
 * One ZooKeeper session, made for locks: it notices servers that are stalled and goes to another one, sets its watches again on each
 * connection, authenticates before anything else, and never repeats a request by itself. It connects at the first request; several
 * users may share it. When the session has expired, make a new client. Needs servers of version 3.5 or later.
 *
 * @example
 * ```ts
 * import { ZooKeeperClient } from 'holdfast/zookeeper/client'
 *
 * const zk = new ZooKeeperClient('zk1:2181,zk2:2181,zk3:2181/app', { sessionTimeout: '10s' })
 * const { path, stat } = await zk.create('/task-', { mode: 'ephemeralSequential', data: 'mine' })
 * console.log(path, stat.czxid)
 * await zk.close()
 * ```
 */
export class ZooKeeperClient {
  readonly #session: Session
  readonly #chroot: Chroot
  readonly #timeoutMs: number
  /** The listener that was registered on behalf of each of the users' ones: it tells them their own path. */
  readonly #translated = new WeakMap<WatchListener, WatchListener>()

  /** `servers` is `host1:2181,host2:2181/chroot`; the chroot must exist. */
  constructor(servers: string, options: ZooKeeperOptions = {}) {
    const { hosts, chroot } = parseServers(servers)
    this.#chroot = new Chroot(chroot)
    this.#session = new Session(sessionSettings(hosts, options))
    this.#timeoutMs = requestTimeoutMs(options)
  }

  /** null before the first answer of a server. */
  get session(): SessionInfo | null {
    return this.#session.info
  }

  /** Why requests are not answered, if the last connection failed and there was no answer since. */
  get lastFailure(): Error | undefined {
    return this.#session.lastFailure
  }

  /** Tells what becomes of the session, from now on. Returns what ends the subscription. */
  subscribe(listener: SessionListener): () => void {
    return this.#session.subscribe(listener)
  }

  /** Makes a node. The answer's path has the number that the server added, if any. */
  async create(path: string, options: CreateOptions = {}): Promise<{ path: string; stat: Stat } & Answer> {
    const fields = this.#createFields({ ...options, path })
    const answer = await this.#ask('create', path, operations.create(fields), options)
    answer.path = this.#chroot.toClient(answer.path)
    return answer
  }

  async delete(path: string, options: VersionOptions = {}): Promise<Answer> {
    const version = options.version ?? ANY_VERSION
    return await this.#ask('delete', path, operations.remove(this.#toServer(path), version), options)
  }

  /** What the server knows of a node; `stat` is null if there is none, and `watch` then tells of its creation. */
  async exists(path: string, options: ReadOptions = {}): Promise<{ stat: Stat | null } & Answer> {
    return this.#ask('exists', path, operations.exists(this.#toServer(path), !!options.watch), options)
  }

  async getData(path: string, options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat } & Answer> {
    return this.#ask('getData', path, operations.getData(this.#toServer(path), !!options.watch), options)
  }

  async setData(path: string, data: Data, options: VersionOptions = {}): Promise<{ stat: Stat } & Answer> {
    const version = options.version ?? ANY_VERSION
    const operation = operations.setData(this.#toServer(path), toBytes(data), version)
    return this.#ask('setData', path, operation, options)
  }

  /** The names of a node's children, in no particular order. */
  async getChildren(
    path: string,
    options: ReadOptions = {},
  ): Promise<{ children: string[]; stat: Stat } & Answer> {
    const operation = operations.getChildren(this.#toServer(path), !!options.watch)
    return this.#ask('getChildren', path, operation, options)
  }

  async getAcl(path: string, options: CallOptions = {}): Promise<{ acl: Acl[]; stat: Stat } & Answer> {
    return this.#ask('getAcl', path, operations.getAcl(this.#toServer(path)), options)
  }

  /** `version` is the ACL's own, the stat's `aversion`. */
  async setAcl(
    path: string,
    acl: readonly Acl[],
    options: VersionOptions = {},
  ): Promise<{ stat: Stat } & Answer> {
    const version = options.version ?? ANY_VERSION
    return this.#ask('setAcl', path, operations.setAcl(this.#toServer(path), acl, version), options)
  }

  /** All of the operations, or none: then it fails like the one that was the cause, whose place is the error's `index`. */
  async multi(
    asked: readonly MultiOperation[],
    options: CallOptions = {},
  ): Promise<{ results: MultiResult[] } & Answer> {
    const fields = asked.map((operation) => this.#multiFields(operation))
    const answer = await this.#ask('multi', '/', multi(fields, asked), options)
    const results = answer.results.map((result) =>
      result.type === 'create' ? { ...result, path: this.#chroot.toClient(result.path) } : result,
    )
    return { ...answer, results }
  }

  /** Resolves when the server has caught up with the leader: reads after it see everything that was written before it. */
  async sync(path = '/', options: CallOptions = {}): Promise<Answer> {
    return this.#ask('sync', path, operations.sync(this.#toServer(path)), options)
  }

  /** The listener is not told any more of what happens to this node. */
  unwatch(path: string, listener: WatchListener): void {
    const translated = this.#translated.get(listener)
    if (translated) this.#session.watches.remove(this.#toServer(path), translated)
  }

  /** Ends the session. Resolves within `closeTimeout`, whatever the servers do, and never fails. */
  close(): Promise<void> {
    return this.#session.close()
  }

  #ask<T extends object>(
    name: string,
    path: string,
    operation: operations.Operation<T>,
    options: ReadOptions,
  ): Promise<T & Answer> {
    const timeoutMs =
      options.timeout === undefined ? this.#timeoutMs : toMs(options.timeout, { name: 'timeout', minMs: 1 })
    const { watch } = options
    const onWatch = watch && ((kind: WatchKind) => this.#watch(kind, path, watch))
    const what = path === '/' ? name : `${name} ${path}`
    const request = new Request(operation, { what, path, timeoutMs, ...(onWatch && { onWatch }) })
    this.#session.submit(request)
    return request.promise
  }

  #watch(kind: WatchKind, path: string, listener: WatchListener): void {
    const translate = (event: WatchEvent): void =>
      listener({ ...event, path: this.#chroot.toClient(event.path) })
    const translated = this.#translated.get(listener) ?? translate
    this.#translated.set(listener, translated)
    this.#session.watches.add(kind, this.#toServer(path), translated)
  }

  #toServer(path: string): string {
    return this.#chroot.toServer(checkPath(path))
  }

  #createFields(options: CreateOptions & { path: string }): operations.CreateFields {
    const { path, data = '', acl = OPEN, mode = 'persistent' } = options
    checkPath(path, mode.endsWith('Sequential'))
    return { path: this.#chroot.toServer(path), data: toBytes(data), acl, mode }
  }

  #multiFields(operation: MultiOperation): MultiFields {
    if (operation.type === 'create') return { type: 'create', ...this.#createFields(operation) }
    const path = this.#toServer(operation.path)
    const version = operation.version ?? ANY_VERSION
    if (operation.type === 'set') return { type: 'set', path, version, data: toBytes(operation.data) }
    return { type: operation.type, path, version }
  }
}

function toBytes(data: Data): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data
}
