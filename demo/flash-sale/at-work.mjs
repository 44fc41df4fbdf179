/** What every worker process does besides its work: it reports a failure in one line, and does not outlive the demonstration. */
const leave = () => process.exit(1)

process.on('disconnect', leave)
process.on('uncaughtException', (error) => {
  process.send?.({ event: 'failed', reason: error.message }, leave)
})

/** The work is done; nothing keeps this process alive any more. */
export function goHome() {
  process.off('disconnect', leave)
}
