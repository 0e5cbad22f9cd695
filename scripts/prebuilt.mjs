// The parts that are compiled for one platform. They come prebuilt inside their packages, and nothing is compiled here;
// npm skips what a platform has no package for without a word.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OS_NAMES } from './engine-packages.mjs';

/** @throws {Error} that names what there is none of for this platform */
export function assertPrebuilt(packages, { platform, arch } = process) {
  const libc = platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime ? 'musl' : '';
  const engine = `@node-llama-cpp/${OS_NAMES[platform] ?? platform}-${arch}`;
  const parts = {
    SQLite: [`better-sqlite3/prebuilds/${platform}${libc}-${arch}.node`],
    'the engine that runs models': [engine, `${engine}-metal`],
    'the TypeScript compiler': [`@typescript/typescript-${platform}-${arch}`],
    esbuild: [`@esbuild/${platform}-${arch}`],
  };
  const missing = Object.keys(parts).filter((part) => !parts[part].some((path) => existsSync(join(packages, path))));
  if (missing.length === 0) return;
  throw new Error(`There is no prebuilt version for ${platform}${libc}-${arch} of: ${missing.join(', ')}.`);
}
