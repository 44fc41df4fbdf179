import { checkName } from '../base/names.js'

/**
 * A Web Lock's name may be any text; a store takes only text that is not empty and has a UTF-8 form. Names that a store takes stay
 * as they are, so that a mutex of that name is the same lock. The others become JSON, which writes half a surrogate pair as an escape,
 * behind a hyphen, with which no name of a Web Lock begins: so the two kinds never meet.
 */
export function resourceOf(name: string): string {
  const isPlain = name !== '' && name.isWellFormed()
  return checkName(isPlain ? name : `-${JSON.stringify(name)}`, 'The name of a lock')
}

/** The name behind a resource; whatever is no escape, such as a mutex that begins with a hyphen, is a name itself. */
export function nameOf(resource: string): string {
  if (!resource.startsWith('-"')) return resource
  try {
    const name: string = JSON.parse(resource.slice(1))
    return resourceOf(name) === resource ? name : resource
  } catch {
    return resource
  }
}
