import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { bundleForBrowser, inBrowser, isBrowserMissing } from '../support/browser.ts';
import { VECTOR_FILES } from '../vectors/all.ts';
import { readVectors } from '../vectors/read-vectors.ts';
import type { BrowserReport } from './channel.page.ts';

test.skipIf(isBrowserMissing)('the channel in a browser', async () => {
  const entry = fileURLToPath(new URL('channel.page.ts', import.meta.url));
  const script = await bundleForBrowser(entry, { format: 'iife' });
  const report = await inBrowser<BrowserReport>(script, `runChannel(${JSON.stringify(readVectors())})`);
  expect(report.outcomes).toEqual(VECTOR_FILES.map(({ rows }) => ({ passed: rows, failed: [] })));
  expect(report.failedKnownAnswer).toBeUndefined();
  expect(report.events).toEqual(['head', 'data', 'data', 'end']);
});
