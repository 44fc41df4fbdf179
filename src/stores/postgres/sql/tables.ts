/**
 * The tables; docs/stores/postgres.md says what the columns mean. Times are whole microseconds.
 * Lines and claims are updated often: free space on each page keeps new versions there, so that no
 * index has to change.
 *
 * Routines keep their plans, which may have been made while a table was empty. So only the right
 * index can serve a query: the key of a claim begins with its id, because by line it would find all
 * waiters.
 */
export const tablesSql = `
CREATE TABLE holdfast.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  swept bigint NOT NULL DEFAULT 0
);

CREATE TABLE holdfast.line (
  id bigint GENERATED ALWAYS AS IDENTITY,
  key bytea PRIMARY KEY,
  space text COLLATE "C" NOT NULL,
  resource text COLLATE "C" NOT NULL,
  last bigint NOT NULL DEFAULT 0,
  seen bigint NOT NULL DEFAULT 0,
  shift bigint NOT NULL DEFAULT 0,
  places bigint NOT NULL DEFAULT 0,
  declared bigint,
  pinned bigint,
  used bigint NOT NULL DEFAULT 0,
  capacity bigint,
  soonest bigint,
  next text COLLATE "C",
  sole text COLLATE "C",
  since bigint,
  call text,
  channel text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE holdfast.claim (
  line bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  place bigint NOT NULL,
  fence bigint,
  permits bigint NOT NULL,
  capacity bigint NOT NULL,
  expires bigint NOT NULL,
  since bigint NOT NULL,
  max_hold bigint,
  floor bigint NOT NULL,
  block bigint NOT NULL,
  channel text NOT NULL,
  client text NOT NULL,
  info text NOT NULL,
  PRIMARY KEY (id, line)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX claim_held ON holdfast.claim (line, place) WHERE fence IS NOT NULL;
CREATE INDEX claim_waiting ON holdfast.claim (line, place) WHERE fence IS NULL;

CREATE TABLE holdfast.state (
  key bytea PRIMARY KEY,
  space text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  last bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 0,
  expires bigint,
  value text NOT NULL DEFAULT ''
);

CREATE TABLE holdfast.row_lock (
  key bytea PRIMARY KEY,
  name text NOT NULL,
  turns bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE holdfast.watcher (
  key bytea NOT NULL,
  channel text NOT NULL,
  client text NOT NULL,
  name text NOT NULL,
  seen bigint NOT NULL,
  PRIMARY KEY (key, channel, client)
);
`
