import { expect, it } from 'vitest'
import { describeOn } from './availability.js'
import { startMariadb } from './mariadb.js'
import { startPostgres } from './postgres.js'

const DATABASES = [
  ['postgres', () => startPostgres()],
  ['mariadb', () => startMariadb()],
] as const

for (const [name, start] of DATABASES) {
  describeOn(name, `a private ${name}`, () => {
    it('keeps what it knew through kill -9, unless it is told to forget', async () => {
      const server = await start()
      await server.query('create table a (b int)')
      await server.query('insert into a values (42)')
      await server.restart({ keepData: true })
      expect(await server.query('select b from a')).toBe('42')
      await server.restart({ keepData: false })
      await expect(server.query('select b from a')).rejects.toThrow(/exist/)
      const { pid } = server
      server.pause()
      await server.stop()
      expect(() => process.kill(pid, 0)).toThrow()
    })
  })
}
