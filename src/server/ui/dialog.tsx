import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** A dialog in front of the page. The browser keeps the focus inside, and gives it back. */
export function Dialog(props: { title: string; onClose(): void; children: ComponentChildren }) {
  const place = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = place.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus({ preventScroll: true })
    }
  }, [])
  const { onClose } = props
  const cancel = (event: Event): void => {
    event.preventDefault()
    onClose()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, too
    <dialog
      ref={place}
      aria-labelledby="dialog-title"
      onCancel={cancel}
      onClick={(event) => event.target === place.current && onClose()}
    >
      <div class="content">
        <h2 id="dialog-title">{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  )
}
