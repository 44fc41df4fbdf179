import { piecesOf, shortened, visible } from './visible.js'

/**
 * Text that another process wrote: a name, label, host or owner. It only ever becomes a text node,
 * isolated from the direction of its neighbours.
 */
export function Text({
  value,
  most = 200,
  class: name = '',
}: {
  value: string
  most?: number
  class?: string
}) {
  return (
    <bdi class={`text ${name}`} title={visible(shortened(value, 2000))}>
      {piecesOf(shortened(value, most)).map((piece) =>
        piece.isHidden ? <span class="hidden-char">{piece.text}</span> : piece.text,
      )}
    </bdi>
  )
}
