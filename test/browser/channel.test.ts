import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { VECTOR_FILES } from '../vectors/all.ts';
import { readVectors } from '../vectors/read-vectors.ts';
import type { BrowserReport } from './channel.page.ts';

const CHROMIUM = '/usr/bin/chromium';
const isMissing = !existsSync(CHROMIUM);
if (isMissing) console.warn(`skipped: no ${CHROMIUM} (Debian package chromium); in CI this is a failure`);

// It runs as root in a container, and reaches nothing: the page is a string.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

test.skipIf(isMissing && process.env['CI'] === undefined)('the channel in a browser', async () => {
  const script = await bundle();
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: script });
    const report: BrowserReport = await page.evaluate(`runChannel(${JSON.stringify(readVectors())})`);
    expect(report.outcomes).toEqual(VECTOR_FILES.map(({ rows }) => ({ passed: rows, failed: [] })));
    expect(report.failedKnownAnswer).toBeUndefined();
    expect(report.events).toEqual(['head', 'data', 'data', 'end']);
  } finally {
    await browser.close();
  }
});

/** For a browser: anything of Node that the channel might import would not resolve. */
async function bundle(): Promise<string> {
  const entry = fileURLToPath(new URL('channel.page.ts', import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0]!.text;
}
