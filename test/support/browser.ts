/** Runs a bundle in a real browser. */
import { existsSync } from 'node:fs';
import { build } from 'esbuild';
import { chromium, type Browser } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';
const isMissing = !existsSync(CHROMIUM);
if (isMissing) console.warn(`skipped: no ${CHROMIUM} (Debian package chromium); in CI this is a failure`);

/** Where nothing is promised about the machine. */
export const isBrowserMissing = isMissing && process.env['CI'] === undefined;

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

/** For a browser: anything of Node that it might import would not resolve. */
export async function bundleForBrowser(
  entry: string,
  { format, minify = false }: { readonly format: 'iife' | 'esm'; readonly minify?: boolean },
): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format,
    minify,
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0]!.text;
}

/** @param flags as its command line takes them, besides those that it needs here */
export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, ...flags] });
}

/** What the expression comes to in an empty page that has run the script. */
export async function inBrowser<Report>(script: string, expression: string): Promise<Report> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: script });
    return await page.evaluate(expression);
  } finally {
    await browser.close();
  }
}
