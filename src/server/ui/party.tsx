import type { Party } from '../shapes.js'
import { Text } from './text.js'

type Someone = Pick<Party, 'host' | 'pid' | 'label' | 'owner'>

const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}(:\d+)?$/

/** An owner that nobody has named is a long id: its beginning and end are enough to tell it apart. */
export function Owner({ value }: { value: string }) {
  return <Text value={value} class="code owner" most={UUID.test(value) ? 12 : 80} />
}

/** Host, process and label in one line. */
export function PartyLine({ party }: { party: Someone }) {
  const { host, pid, label, owner } = party
  return (
    <span class="party">
      <Text value={host === '' ? owner : host} class="host" most={80} />
      {pid > 0 && <span class="pid">{pid}</span>}
      {label !== null && label !== '' && <Text value={label} class="label" most={80} />}
    </span>
  )
}
