/**
 * The members that the URLs name. `stores` has the functions that make them: those of the sources,
 * or those of the built package.
 */
export function membersOf(urls, { redis, postgres, mysql, sqlite }, connections) {
  return urls.map((url) => {
    if (url.startsWith('sqlite:')) return sqlite(url.slice('sqlite:'.length))
    if (url.startsWith('redis:')) return redis(url)
    return (url.startsWith('postgres:') ? postgres : mysql)(url, { connections })
  })
}
