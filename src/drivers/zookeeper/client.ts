import { type Duration, toMs } from '../../base/duration.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { OPEN } from './acl.js'
import type { SessionInfo, SessionListener } from './events.js'
import { parseServers } from './hosts.js'
import { type MultiFields, type MultiResult, multi } from './multi.js'
import * as operations from './operations.js'
import { requestTimeoutMs, sessionSettings, type ZooKeeperOptions } from './options.js'
import { Chroot, checkPath } from './paths.js'
import type { Acl, Stat } from './records.js'
import { type Answer, PendingRequest } from './request.js'
import { ZooKeeperSession } from './session.js'
import type { WatchEvent, WatchKind, WatchListener } from './watches.js'

/** Text, as UTF-8, or bytes. */
export type Data = string | Uint8Array

/** The options of every request. */
export interface CallOptions {
  /** How long this request waits for its answer. Default: the client's `requestTimeout`. */
  timeout?: Duration | undefined
}

/** The options of requests that read. */
export interface ReadOptions extends CallOptions {
  /**
   * Called once, at the next change. Kept over reconnects; dropped without a call when the session
   * ends.
   */
  watch?: WatchListener | undefined
}

/** The options of requests that change a node. */
export interface VersionOptions extends CallOptions {
  /** Fail with BAD_VERSION unless the node has this version. Default: any. */
  version?: number | undefined
}

/** The options of `create`. */
export interface CreateOptions extends CallOptions {
  /** Default: empty. */
  data?: Data | undefined
  /** Default: anyone may do everything. */
  acl?: readonly Acl[] | undefined
  /** Default: `persistent`. */
  mode?: operations.CreateMode | undefined
}

const CALL_OPTIONS: OptionNames<ReadOptions & VersionOptions & CreateOptions> = {
  timeout: true,
  watch: true,
  version: true,
  data: true,
  acl: true,
  mode: true,
}

/** One operation of a multi. `version`: fail unless the node has it. */
export type MultiOperation =
  | ({ type: 'create'; path: string } & Omit<CreateOptions, 'timeout'>)
  | { type: 'delete'; path: string; version?: number | undefined }
  | { type: 'set'; path: string; data: Data; version?: number | undefined }
  | { type: 'check'; path: string; version?: number | undefined }

const ANY_VERSION = -1

/**
 * One ZooKeeper session, made for locks: it leaves servers that are stalled for another one, sets
 * its watches again on each connection, authenticates before anything else, and never repeats a
 * request by itself. It connects at the first request; several callers may share it. When the
 * session has expired, make a new client. Needs servers of version 3.5 or later.
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
  readonly #session: ZooKeeperSession
  readonly #chroot: Chroot
  readonly #timeoutMs: number
  /** By a caller's listener, the one that is registered for it: it translates the path. */
  readonly #translated = new WeakMap<WatchListener, WatchListener>()

  /** `servers` is `host1:2181,host2:2181/chroot`; the chroot must exist. */
  constructor(servers: string, options: ZooKeeperOptions = {}) {
    const { hosts, chroot } = parseServers(servers)
    this.#chroot = new Chroot(chroot)
    this.#session = new ZooKeeperSession(sessionSettings(hosts, options))
    this.#timeoutMs = requestTimeoutMs(options)
  }

  /** null before the first answer of a server. */
  get session(): SessionInfo | null {
    return this.#session.info
  }

  /**
   * The leader counts the session's timeout from this monotonic time, or from a later one: the
   * latest `touchedAt` of all answered writes. -Infinity before the first one.
   */
  get touchedAt(): number {
    return this.#session.touchedAt
  }

  /** Why requests are not answered, if the last connection failed and no answer has come since. */
  get lastFailure(): Error | undefined {
    return this.#session.lastFailure
  }

  /**
   * Calls the listener with news of the session, from now on. Returns what ends the subscription.
   */
  subscribe(listener: SessionListener): () => void {
    return this.#session.subscribe(listener)
  }

  /** Makes a node. The answer's path has the number that the server added, if any. */
  create(path: string, options: CreateOptions = {}): Promise<{ path: string; stat: Stat } & Answer> {
    const toClient = (made: string): string => this.#chroot.toClient(made)
    return this.#ask('create', path, options, () =>
      operations.create(this.#createFields(path, options), toClient),
    )
  }

  delete(path: string, options: VersionOptions = {}): Promise<Answer> {
    const version = options.version ?? ANY_VERSION
    return this.#ask('delete', path, options, () => operations.remove(this.#toServer(path), version))
  }

  /** A node's stat, or null if there is none; `watch` then tells of its creation. */
  exists(path: string, options: ReadOptions = {}): Promise<{ stat: Stat | null } & Answer> {
    return this.#ask('exists', path, options, () => operations.exists(this.#toServer(path), !!options.watch))
  }

  getData(path: string, options: ReadOptions = {}): Promise<{ data: Buffer; stat: Stat } & Answer> {
    return this.#ask('getData', path, options, () =>
      operations.getData(this.#toServer(path), !!options.watch),
    )
  }

  setData(path: string, data: Data, options: VersionOptions = {}): Promise<{ stat: Stat } & Answer> {
    const version = options.version ?? ANY_VERSION
    return this.#ask('setData', path, options, () =>
      operations.setData(this.#toServer(path), toBytes(data), version),
    )
  }

  /** The names of a node's children, in no particular order. */
  getChildren(path: string, options: ReadOptions = {}): Promise<{ children: string[]; stat: Stat } & Answer> {
    return this.#ask('getChildren', path, options, () =>
      operations.getChildren(this.#toServer(path), !!options.watch),
    )
  }

  getAcl(path: string, options: CallOptions = {}): Promise<{ acl: Acl[]; stat: Stat } & Answer> {
    return this.#ask('getAcl', path, options, () => operations.getAcl(this.#toServer(path)))
  }

  /** `version` is the ACL's own, the stat's `aversion`. */
  setAcl(path: string, acl: readonly Acl[], options: VersionOptions = {}): Promise<{ stat: Stat } & Answer> {
    const version = options.version ?? ANY_VERSION
    return this.#ask('setAcl', path, options, () => operations.setAcl(this.#toServer(path), acl, version))
  }

  /**
   * All operations or none: then it fails with the error of the one that failed, whose position is
   * `index`.
   */
  async multi(
    asked: readonly MultiOperation[],
    options: CallOptions = {},
  ): Promise<{ results: MultiResult[] } & Answer> {
    const fields = asked.map((operation) => this.#multiFields(operation))
    const answer = await this.#ask('multi', '/', options, () => multi(fields, asked))
    const results = answer.results.map((result) =>
      result.type === 'create' ? { ...result, path: this.#chroot.toClient(result.path) } : result,
    )
    return { ...answer, results }
  }

  /**
   * Resolves when the server has caught up with the leader: later reads see everything that was
   * written before.
   */
  sync(path = '/', options: CallOptions = {}): Promise<Answer> {
    return this.#ask('sync', path, options, () => operations.sync(this.#toServer(path)))
  }

  /** The listener is not called any more for this node. */
  unwatch(path: string, listener: WatchListener): void {
    const translated = this.#translated.get(listener)
    if (translated) this.#session.watches.remove(this.#toServer(path), translated)
  }

  /** Ends the session. Resolves within `closeTimeout`, whatever the servers do, and never fails. */
  close(): Promise<void> {
    return this.#session.close()
  }

  /** Rejects and never throws. Not an async function: that would cost as much as the rest. */
  #ask<T extends object>(
    name: string,
    path: string,
    options: ReadOptions,
    operation: () => operations.Operation<T>,
  ): Promise<T & Answer> {
    try {
      checkOptions(options, CALL_OPTIONS, "{ timeout: '5s' }")
      const request = this.#request(name, path, options, operation())
      this.#session.submit(request)
      return request.promise
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #request<T extends object>(
    name: string,
    path: string,
    options: ReadOptions,
    operation: operations.Operation<T>,
  ): PendingRequest<T> {
    const timeoutMs =
      options.timeout === undefined ? this.#timeoutMs : toMs(options.timeout, { name: 'timeout', minMs: 1 })
    const { watch } = options
    const what = path === '/' ? name : `${name} ${path}`
    if (!watch) return new PendingRequest(operation, { what, path, timeoutMs })
    const onWatch = (kind: WatchKind): void => this.#watch(kind, path, watch)
    return new PendingRequest(operation, { what, path, timeoutMs, onWatch })
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

  #createFields(path: string, options: CreateOptions): operations.CreateFields {
    const { data = '', acl = OPEN, mode = 'persistent' } = options
    checkPath(path, mode.endsWith('Sequential'))
    return { path: this.#chroot.toServer(path), data: toBytes(data), acl, mode }
  }

  #multiFields(operation: MultiOperation): MultiFields {
    if (operation.type === 'create')
      return { type: 'create', ...this.#createFields(operation.path, operation) }
    const path = this.#toServer(operation.path)
    const version = operation.version ?? ANY_VERSION
    if (operation.type === 'set') return { type: 'set', path, version, data: toBytes(operation.data) }
    return { type: operation.type, path, version }
  }
}

function toBytes(data: Data): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data
}
