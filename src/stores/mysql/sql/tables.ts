import type { MysqlNames } from './names.js'

/**
 * The tables. Names are bytes, since collations fold case and ignore trailing spaces, and are found
 * by their SHA-256, since an index takes 3072 bytes at most. Times are whole microseconds: for a
 * line by its own clock, for a state by the server's.
 */
export function tables({ line, claim, news, state, version, rowLock, sessionLock }: MysqlNames): string[] {
  const end = 'ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = utf8mb4'
  return [
    `CREATE TABLE IF NOT EXISTS ${line} (
  line BINARY(32) NOT NULL PRIMARY KEY COMMENT 'SHA-256 of the space and the resource',
  space BLOB NOT NULL,
  resource BLOB NOT NULL,
  last BIGINT NOT NULL COMMENT 'the newest fence',
  seen BIGINT NOT NULL COMMENT 'the latest time of the line: it never goes back',
  shift BIGINT NOT NULL COMMENT 'how far the clock of the line is ahead of the server, whose clock was set back',
  used BIGINT NOT NULL COMMENT 'the permits of all holds',
  soonest BIGINT NOT NULL COMMENT 'no claim of the line lapses before this',
  next_place BIGINT NULL COMMENT 'the first waiter; the places before it hold',
  last_place BIGINT NOT NULL,
  capacity BIGINT NOT NULL COMMENT 'what the claims of the line declare',
  declared BIGINT NULL COMMENT 'with a pinned capacity: what claimants may still declare',
  pinned BIGINT NULL,
  is_alone TINYINT NOT NULL DEFAULT 0 COMMENT 'the only claim is a hold, kept here: its id, client and info, and how many fences up to the newest are its own',
  alone_block BIGINT NOT NULL DEFAULT 1,
  alone_since BIGINT NOT NULL DEFAULT 0 COMMENT 'when it was granted',
  alone_id VARBINARY(255) NULL,
  alone_client VARBINARY(255) NULL,
  alone_info LONGBLOB NULL,
  KEY by_name (space(32), resource(200))
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${claim} (
  line BINARY(32) NOT NULL,
  place BIGINT NOT NULL,
  id VARBINARY(255) NOT NULL,
  client VARBINARY(255) NOT NULL,
  permits BIGINT NOT NULL,
  capacity BIGINT NOT NULL,
  fence BIGINT NOT NULL COMMENT '0: it waits',
  expires BIGINT NOT NULL,
  max_hold BIGINT NULL,
  floor_fence BIGINT NOT NULL,
  block BIGINT NOT NULL,
  since BIGINT NOT NULL,
  info LONGBLOB NOT NULL,
  PRIMARY KEY (line, place),
  UNIQUE KEY by_id (line, id)
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${news} (
  client VARBINARY(255) NOT NULL COMMENT 'the owner of the claim',
  at BIGINT NOT NULL COMMENT 'by the clock of the server',
  line BINARY(32) NOT NULL,
  id VARBINARY(255) NOT NULL,
  what ENUM('granted', 'lost') NOT NULL,
  fence BIGINT NOT NULL COMMENT 'of a waiter that was revoked: its place, below zero',
  PRIMARY KEY (client, at, line, id)
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${state} (
  state BINARY(32) NOT NULL PRIMARY KEY COMMENT 'SHA-256 of the space and the name',
  space BLOB NOT NULL,
  name BLOB NOT NULL,
  value LONGBLOB NOT NULL,
  version BIGINT NOT NULL COMMENT '0: deleted',
  last BIGINT NOT NULL COMMENT 'the number of the newest change',
  expires BIGINT NULL COMMENT 'null: kept until it is deleted'
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${rowLock} (
  name_hash BINARY(32) NOT NULL PRIMARY KEY,
  name BLOB NOT NULL COMMENT 'of a transaction lock',
  turns BIGINT NOT NULL COMMENT 'how often it was taken'
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${sessionLock} (
  name_hash BINARY(32) NOT NULL PRIMARY KEY,
  name BLOB NOT NULL COMMENT 'of a session lock (GET_LOCK)',
  fence BIGINT NOT NULL COMMENT 'the newest'
) ${end}`,
    `CREATE TABLE IF NOT EXISTS ${version} (
  one TINYINT NOT NULL PRIMARY KEY,
  version INT NOT NULL,
  swept BIGINT NOT NULL COMMENT 'when a client last did the maintenance'
) ${end}`,
  ]
}
