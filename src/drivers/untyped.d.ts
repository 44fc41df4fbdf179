// Optional drivers that are not installed here, or that Node 20 does not have. Used structurally.
declare module 'node:sqlite'
declare module 'better-sqlite3'
