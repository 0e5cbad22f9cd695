import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { startSealedGateway } from '../support/sealed-gateway.ts';
import { bundleForBrowser, inBrowser, isBrowserMissing } from '../support/browser.ts';
import type { SdkReport } from './sdk.page.ts';

const MAX_BUNDLE_BYTES = 40_000;

test('the SDK is small enough for a page', async () => {
  const entry = fileURLToPath(new URL('../../clients/sdk/index.ts', import.meta.url));
  const bundle = await bundleForBrowser(entry, { format: 'esm', minify: true });
  expect(gzipSync(bundle).length).toBeLessThan(MAX_BUNDLE_BYTES);
});

test.skipIf(isBrowserMissing)('the SDK in a browser', async () => {
  async function* answer(): AsyncGenerator<string> {
    for (const piece of ['one ', 'two ', 'three']) yield piece;
  }
  const gateway = await startSealedGateway({ handle: () => ({ body: answer() }) });
  try {
    // Dies in mid-answer, so that the page also picks one up again.
    gateway.meddle('call', { do: 'cut', afterBytes: 600 });
    const script = await bundleForBrowser(fileURLToPath(new URL('sdk.page.ts', import.meta.url)), { format: 'iife' });
    const report = await inBrowser<SdkReport>(script, `runSdk(${JSON.stringify(gateway.newDevice())})`);
    expect(report).toEqual({ status: 200, pieces: 3, text: 'one two three' });
    const [request] = gateway.requests;
    const boundary = new Map(request!.headers).get('content-type')?.split('boundary=')[1];
    expect(new TextDecoder().decode(request!.body)).toContain(`--${boundary}`);
  } finally {
    await gateway.close();
  }
});
