// Clients that the user has. Of each, another method misbehaves: it throws, or returns nothing. Whatever becomes of the locks, the process
// must go on. Prints the methods that were reached, and ends with 0.
//   node client.mjs PACKAGE URL throws|nothing METHOD...
import { Holdfast } from 'holdfast'
import { mysql, sessionLock } from 'holdfast/mysql'
import { advisory, postgres } from 'holdfast/postgres'
import { redis } from 'holdfast/redis'

const [, , name = '', url = '', fault = '', ...methods] = process.argv
const ignore = () => {}
const reached = new Set()

/** The same client, and so are all clients and connections that it makes; `faulty` names the method that misbehaves now. */
function wrapped(target, state) {
  return new Proxy(target, {
    get(_, key) {
      const value = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return (...args) => {
        if (key !== state.faulty) return asWrapped(value.apply(target, args), target, state)
        reached.add(key)
        if (fault === 'nothing') return undefined
        throw new Error(`${key} misbehaves`)
      }
    },
  })
}

function asWrapped(result, maker, state) {
  // A statement of postgres.js is sent when it is waited for.
  if (result === maker || typeof result?.values === 'function') return result
  if (result instanceof Promise) return result.then((each) => asWrapped(each, maker, state))
  return isClient(result) ? wrapped(result, state) : result
}

function isClient(value) {
  return ['on', 'exec', 'unlisten'].some((method) => typeof value?.[method] === 'function')
}

const MAKERS = {
  async ioredis(state) {
    const { Redis } = await import('ioredis')
    const client = new Redis(url)
    client.on('error', ignore)
    return onRedis(wrapped(client, state), () => client.disconnect())
  },
  async redis(state) {
    const { createClient } = await import('redis')
    const client = createClient({ url })
    client.on('error', ignore)
    await client.connect()
    return onRedis(wrapped(client, state), () => client.destroy())
  },
  async pg(state) {
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    const faulty = wrapped(pool, state)
    return { stores: [postgres(faulty)], direct: advisory(faulty), end: () => pool.end() }
  },
  async postgres(state) {
    const { default: connect } = await import('postgres')
    const sql = connect(url, { max: 3, onnotice: ignore })
    return { stores: [postgres(wrapped(sql, state))], end: () => sql.end({ timeout: 1 }) }
  },
  async mysql2(state) {
    const { createPool } = await import('mysql2/promise')
    return onMysql(createPool(url), state)
  },
  async mariadb(state) {
    const { createPool } = await import('mariadb')
    return onMysql(createPool(url.replace('mysql:', 'mariadb:')), state)
  },
}

function onRedis(client, end) {
  return { stores: [redis(client), redis(client, { replicas: 1, replicaTimeout: 50 })], end }
}

function onMysql(pool, state) {
  const faulty = wrapped(pool, state)
  return { stores: [mysql(faulty)], direct: sessionLock(faulty), end: () => pool.end() }
}

/** From its beginning on, and while it is used. */
const PHASES = [true, false, true]

async function useStore(store, method, state) {
  const [one, two] = [1, 2].map(() => new Holdfast(store, { storeTimeout: 300, space: method }))
  for (const isFaulty of PHASES) {
    state.faulty = isFaulty ? method : ''
    const hold = await one.mutex('door').acquire({ wait: 200 }).catch(ignore)
    const next = two.mutex('door').acquire({ wait: 200 }).catch(ignore)
    await one.latch('ready', 1).wait({ wait: 50 }).catch(ignore)
    await hold?.release().catch(ignore)
    await (await next)?.release().catch(ignore)
  }
  await Promise.all([one, two].map((each) => each.close().catch(ignore)))
}

async function play(method) {
  const state = { faulty: '' }
  const { stores, direct, end } = await MAKERS[name](state)
  for (const store of stores) await useStore(store, method, state)
  for (const isFaulty of PHASES) {
    state.faulty = isFaulty ? method : ''
    await direct?.run(method, ignore, { wait: 200 }).catch(ignore)
  }
  state.faulty = ''
  // A connection that was never given back keeps its pool from ending.
  await Promise.race([
    Promise.resolve(end()).catch(ignore),
    new Promise((resolve) => setTimeout(resolve, 200)),
  ])
}

await Promise.all(methods.map(play))
console.log([...reached].join(' '))
process.exit(0)
