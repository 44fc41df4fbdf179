import { decodeText } from '../../base/text.js'
import type { ClaimView, LineView, Push, StateValue } from '../../contract/store.js'

/** Decodes names, ids and values, which are stored without NUL. */

export function decodePush(push: Push): Push {
  switch (push.type) {
    case 'granted':
    case 'lost':
    case 'wanted':
      return { ...push, resource: decodeText(push.resource), id: decodeText(push.id) }
    case 'state':
      return { ...push, key: decodeText(push.key) }
    default:
      return push
  }
}

export function decodeClaim(view: ClaimView): ClaimView {
  return { ...view, id: decodeText(view.id), info: decodeText(view.info) }
}

/** `declared` is null where nothing is pinned. */
export function decodeLine(line: LineView & { declared?: number | null }): LineView {
  const { capacity, claims, declared } = line
  const view = { resource: decodeText(line.resource), capacity, claims: claims.map(decodeClaim) }
  return typeof declared === 'number' ? { ...view, declared } : view
}

export function decodeState(state: StateValue | null): StateValue | null {
  return state && { version: state.version, value: decodeText(state.value) }
}
