/** The stores that need tables, each with what makes them. Loaded only when asked for. */
const SCHEMAS: Readonly<Record<string, (name: string | undefined) => Promise<string>>> = {
  mysql: async (name) => (await import('../stores/mysql/schema.js')).schemaText(name),
  postgres: async (name) => (await import('../stores/postgres/schema.js')).schemaText(name ?? 'holdfast'),
}

export const SCHEMA_STORES: readonly string[] = Object.keys(SCHEMAS)

/** SQL that makes what a store needs in its database; null: no such store, or it needs nothing. */
export async function schemaOf(store: string, name: string | undefined): Promise<string | null> {
  const make = Object.hasOwn(SCHEMAS, store) ? SCHEMAS[store] : undefined
  return make === undefined ? null : make(name)
}
