// Loaded before holdfast: SIGUSR2 makes it fail as an unforeseen error would.
process.on('SIGUSR2', () => {
  throw new Error('an unforeseen error')
})
