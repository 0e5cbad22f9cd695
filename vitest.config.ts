import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Milliseconds belong to the bench. This limit only turns a hang into a failure, on the busiest machine too.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two at a time: each end-to-end file runs a gateway and a model runner beside it.
    maxWorkers: 2,
  },
});
