import type { Family, Sample } from './counts.js'

/** The text exposition format of Prometheus, version 0.0.4. */
export function exposition(all: readonly Family[]): string {
  return all.map(family).join('')
}

function family({ definition: { prometheus, help, type }, samples }: Family): string {
  const head = `# HELP ${prometheus} ${escapeHelp(help)}\n# TYPE ${prometheus} ${type}\n`
  return head + samples().map(line).join('')
}

function line({ name, labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** Names may hold any character. Half of a surrogate pair would not be valid UTF-8. */
function escapeLabel(text: string): string {
  return escapeHelp(text.toWellFormed()).replaceAll('"', '\\"')
}
