import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { startSealedGateway } from '../support/sealed-gateway.ts';
import { bundleForBrowser, inBrowser, isBrowserMissing } from '../support/browser.ts';
import { startRelayed } from '../support/relayed-gateway.ts';
import { tap } from '../support/sealed-client.ts';
import { until } from '../support/wait.ts';
import type { SdkRelayReport } from './sdk-relay.page.ts';
import type { SdkReport } from './sdk.page.ts';

test.each([
  // The limit is what a page pays that wants nothing else.
  [new URL('../../clients/sdk/index.ts', import.meta.url), 40_000],
  [new URL('../../clients/sdk/relay.ts', import.meta.url), 36_000],
])('the entry %s is small enough for a page', async (entry, maxBytes) => {
  const bundle = await bundleForBrowser(fileURLToPath(entry), { format: 'esm', minify: true });
  expect(gzipSync(bundle).length).toBeLessThan(maxBytes);
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

test.skipIf(isBrowserMissing)('the SDK in a browser that can reach home through a relay alone', async () => {
  const pieces = tap();
  async function* slow(): AsyncGenerator<string> {
    for await (const piece of pieces.body) {
      if (piece === 'end') return;
      yield piece;
    }
  }
  const relayed = await startRelayed(({ path, body }) => ({ body: path === '/slow' ? slow() : body }));
  const script = await bundleForBrowser(fileURLToPath(new URL('sdk-relay.page.ts', import.meta.url)), {
    format: 'iife',
  });
  const reported = inBrowser<SdkRelayReport>(script, `runSdkRelay(${JSON.stringify(relayed.device)})`);
  pieces.push('one ');
  await until(() => relayed.gateway.requests.some(({ path }) => path === '/begun'));
  await relayed.killRelay();
  pieces.push('two ');
  await relayed.restartRelay();
  for (const piece of ['three', 'end']) pieces.push(piece);
  expect(await reported).toEqual({ echoed: 600_000, text: 'one two three', kind: 'relay' });
  expect(relayed.gateway.requests.filter(({ path }) => path === '/slow')).toHaveLength(1);
});
