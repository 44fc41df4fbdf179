import { describe, expect, it } from 'vitest'
import { readServerUrl } from '../../src/stores/shared/server-url.js'

const read = (rest: string) => readServerUrl(rest, 'etcd', ['ttl', 'tls'])

describe('the URL of a server', () => {
  it('has servers, a login and options', () => {
    expect(read('//a:1,b:2/')).toEqual({ servers: 'a:1,b:2', login: undefined, options: {} })
    expect(read('//a:1/root?ttl=1s&tls=true')).toEqual({
      servers: 'a:1/root',
      login: undefined,
      options: { ttl: '1s', tls: true },
    })
  })

  it.each([
    ['//u:p@a:1', 'p'],
    ['//u:p%40ss%2F@a:1', 'p@ss/'],
    // Only the first colon and the last @ end something.
    ['//u:a:b@c@a:1', 'a:b@c'],
    ['//u:@a:1', ''],
  ])('may have any password: %s', (rest, password) => {
    expect(read(rest)).toMatchObject({ servers: 'a:1', login: { user: 'u', password } })
  })

  it.each([
    ['//u@a:1', 'no password'],
    ['//u:secret%@a:1', 'write %25'],
    ['//u:secret@a:1?tsl=true', "There is no option 'tsl'"],
    ['//u:secret@a:1?tls=maybe', 'true or false'],
  ])('is refused with a reason, and without its password: %s', (rest, reason) => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
    expect(() => read(rest)).toThrow(refused)
    expect(() => read(rest)).toThrow(reason)
    expect(() => read(rest)).not.toThrow('secret')
  })
})
