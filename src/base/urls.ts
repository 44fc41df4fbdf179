/** A store's URL for people: without users and passwords, also in the members of a quorum. */
export function withoutLogins(url: string): string {
  return url.replace(/\/\/[^/?#]*@/g, '//')
}
