import { checkName } from '../base/names.js'

/**
 * A Web Lock's name may be any text; a store takes only text that is not empty and has a UTF-8
 * form. Names that a store takes stay as they are, so that a mutex of that name is the same lock.
 * Others become a hyphen and JSON, which escapes lone surrogates. No Web Lock's name begins with a
 * hyphen, so the two kinds cannot collide.
 */
export function resourceOf(name: string): string {
  const isPlain = name !== '' && name.isWellFormed()
  return checkName(isPlain ? name : `-${JSON.stringify(name)}`, 'The name of a lock')
}

/**
 * The name of a resource. One that is no escape, such as a mutex with a hyphen, is its own name.
 */
export function nameOf(resource: string): string {
  if (!resource.startsWith('-"')) return resource
  try {
    const name: string = JSON.parse(resource.slice(1))
    return resourceOf(name) === resource ? name : resource
  } catch {
    return resource
  }
}
