/**
 * A store whose spaces all begin with `prefix`: so many tests share one schema, and each has spaces of its own.
 */
export function spaced(store, prefix) {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const connection = store.connect({ ...client, space: `${prefix}${client.space}` })
      const list = connection.spaces.bind(connection)
      connection.spaces = async () =>
        (await list()).filter((space) => space.startsWith(prefix)).map((space) => space.slice(prefix.length))
      return connection
    },
  }
}
