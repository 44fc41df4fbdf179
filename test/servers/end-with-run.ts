// A run that is killed must not leave its processes behind, as their servers would stay with them.
// npm test, vitest and its workers are tied by IPC channels: where the process above ends, however
// abruptly, the one below hears of it.
process.once('disconnect', () => process.exit(1))

/** vitest calls this in its main process, which must be able to end while the channel is open. */
export default function setUpMain(): void {
  process.channel?.unref()
}
