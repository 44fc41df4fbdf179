import { defineConfig } from 'vitest/config'
import { shared } from '../vitest.config.js'

// `npm run prove`: it runs for as long as it was told to.
export default defineConfig({
  test: {
    ...shared,
    include: ['proof/campaign.ts'],
    testTimeout: 0,
    maxWorkers: 1,
    disableConsoleIntercept: true,
  },
})
