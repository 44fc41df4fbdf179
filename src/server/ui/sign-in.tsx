import { useRef, useState } from 'preact/hooks'
import { post, RefusedRequest } from './api.js'
import { Icon } from './icons.js'
import { wordsOf } from './visible.js'

/** Asks for the token. The server keeps it in a cookie that no script can read. */
export function SignIn({ onDone }: { onDone(): void }) {
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    try {
      await post('login', { token: field.current?.value ?? '' })
      onDone()
    } catch (error) {
      const isWrong = error instanceof RefusedRequest && (error.status === 401 || error.status === 403)
      setProblem(isWrong ? 'This token is not valid.' : wordsOf(error))
      field.current?.select()
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={send}>
        <h1>
          <Icon name="lock" /> Holdfast
        </h1>
        <p class="faint">This dashboard needs its token.</p>
        <label for="token">Token</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="current-password"
          required
          autofocus
          aria-invalid={problem !== null}
          aria-describedby="sign-in-problem"
        />
        <p id="sign-in-problem" class="problem" role="alert">
          {problem}
        </p>
        <button type="submit" class="main" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  )
}
