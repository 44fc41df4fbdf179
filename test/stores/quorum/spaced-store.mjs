// How other processes reach a quorum with spaces of its own: the URL is JSON.
import { mysql } from 'holdfast/mysql'
import { postgres } from 'holdfast/postgres'
import { quorum } from 'holdfast/quorum'
import { redis } from 'holdfast/redis'
import { sqlite } from 'holdfast/sqlite'
import { spaced } from '../spaced.mjs'
import { membersOf } from './members.mjs'

export default function open(url) {
  const { urls, options, prefix } = JSON.parse(url)
  return spaced(quorum(membersOf(urls, { redis, postgres, mysql, sqlite }, 2), options), prefix)
}
