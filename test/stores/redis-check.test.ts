import { expect, it, onTestFinished } from 'vitest'
import { type Finding, Holdfast } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { pageOf } from '../project/pages.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'

/** What `locks.check()` says, by what it is about. */
async function check(url: string, options: RedisOptions = {}): Promise<Record<string, Finding>> {
  await using locks = new Holdfast(redis(url, options))
  return Object.fromEntries((await locks.check()).map((finding) => [finding.about, finding]))
}

/** The rights that the page lists, for `ACL SETUSER`. */
function listedRights(): string[] {
  const [, rights = ''] =
    /^ {4}ACL SETUSER locks (.*\n {6}.*)$/m.exec(pageOf('docs/stores/redis.md').text) ?? []
  expect(rights).toContain('+evalsha')
  return rights.trim().split(/\s+/)
}

async function server(...args: string[]): Promise<RedisServer> {
  const started = await startRedis({ args })
  onTestFinished(() => started.stop())
  return started
}

describeOn('redis', 'a look at a live Redis', () => {
  it.each(['ioredis', 'redis', 'iovalkey'] as const)(
    'is content with a safe server, through %s',
    async (driver) => {
      const { url } = await server('--appendonly', 'yes', '--appendfsync', 'always')
      const findings = await check(url, { driver })
      expect(Object.keys(findings).sort()).toEqual(
        ['clock', 'eviction', 'messages', 'permissions', 'persistence', 'replicas', 'role', 'version'].sort(),
      )
      for (const finding of Object.values(findings))
        expect(finding, finding.text).toMatchObject({ level: 'fine' })
    },
  )

  it('says that a server without SCAN cannot list', async () => {
    const unlisted = await server('--rename-command', 'SCAN', '')
    expect((await check(unlisted.url))['listing']).toMatchObject({
      level: 'risk',
      text: expect.stringContaining('SCAN is refused'),
    })
  })

  it('names eviction and missing persistence as risks, and says what to do', async () => {
    const { url } = await server('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru')
    const { eviction, persistence } = await check(url)
    expect(eviction).toMatchObject({ level: 'risk', text: expect.stringContaining('noeviction') })
    expect(persistence).toMatchObject({ level: 'risk', text: expect.stringContaining('appendonly yes') })
    const everysec = await server('--appendonly', 'yes')
    expect((await check(everysec.url))['persistence']).toMatchObject({
      level: 'risk',
      text: expect.stringContaining('everysec'),
    })
  })

  it('names replicas that are not waited for as a risk, and those that are missing as a fault', async () => {
    const master = await server()
    expect((await check(master.url, { replicas: 1, replicaTimeout: 50 }))['replicas']).toMatchObject({
      level: 'fault',
      text: expect.stringContaining('nothing will be granted'),
    })
    await server('--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0')
    await master.hasReplica()
    expect((await check(master.url))['replicas']).toMatchObject({ level: 'risk' })
    expect((await check(master.url, { replicas: 1 }))['replicas']).toMatchObject({ level: 'fine' })
  })

  it('names missing permissions as a fault, and the listed ones are enough', async () => {
    const redisServer = await server()
    const rights = listedRights()
    const user = (name: string, granted: string[]) => redisServer.cli('acl', 'setuser', name, ...granted)
    const as = (name: string) => redisServer.url.replace('//', `//${name}:password@`)
    await user('whole', rights)
    expect((await check(as('whole')))['permissions']).toMatchObject({ level: 'fine' })
    for (const command of ['publish', 'hset', 'hlen', 'hvals', 'hexists']) {
      await user(command, [...rights, `-${command}`])
      expect((await check(as(command)))['permissions'], command).toMatchObject({
        level: 'fault',
        text: expect.stringContaining('docs/stores/redis.md'),
      })
    }
  })

  it('needs no other rights for a line that is bounded', async () => {
    const redisServer = await server()
    await redisServer.cli('acl', 'setuser', 'whole', ...listedRights())
    const url = redisServer.url.replace('//', '//whole:password@')
    await using locks = new Holdfast(redis(url), { order: 'strict', maxWaiters: 2 })
    await using _hold = await locks.mutex('a').acquire()
    const codes: string[] = []
    const waits = Array.from({ length: 6 }, () =>
      locks
        .mutex('a')
        .acquire()
        .catch((error) => codes.push(error.code)),
    )
    await expect.poll(() => codes, { timeout: 20_000 }).toEqual(Array(4).fill('LINE_FULL'))
    await locks.close({ drain: 0 })
    await Promise.all(waits)
  })

  it.each(['ioredis', 'redis'] as const)('looks at every master of a Cluster, through %s', async (driver) => {
    const cluster = await startRedisCluster()
    onTestFinished(async () => void (await cluster.stop()))
    const findings = await check(cluster.url, { driver })
    expect(Object.keys(findings).filter((about) => about.startsWith('version of '))).toHaveLength(3)
    expect(findings['permissions']).toMatchObject({ level: 'fine' })
  })
})
