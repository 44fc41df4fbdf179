/** The stores that need tables. Their modules are loaded on demand. */
const SCHEMAS: Readonly<Record<string, (name: string | undefined) => Promise<string>>> = {
  mysql: async (name) => (await import('../stores/mysql/schema.js')).schemaText(name),
  postgres: async (name) => (await import('../stores/postgres/schema.js')).schemaText(name ?? 'holdfast'),
}

export const SCHEMA_STORES: readonly string[] = Object.keys(SCHEMAS)

/** The SQL that sets up a store's database; null: unknown store, or nothing to set up. */
export async function schemaOf(store: string, name: string | undefined): Promise<string | null> {
  const make = Object.hasOwn(SCHEMAS, store) ? SCHEMAS[store] : undefined
  return make === undefined ? null : make(name)
}
