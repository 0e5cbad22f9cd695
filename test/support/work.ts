/**
 * How much work a piece of code does, as a count that no machine's speed changes. To be imported before what is
 * counted: V8 counts in code that it compiles from then on.
 */
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/**
 * How often the functions and blocks of our code ran meanwhile, all together. What Node does inside one of its own
 * functions is not seen; the functions that it is handed, to sort by for example, are.
 * @param where a file or folder from the root, such as `relay/`
 */
export async function countWork(where: string, run: () => unknown): Promise<number> {
  await session.post('Profiler.takePreciseCoverage');
  await run();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => url.replace('file://', '').startsWith(`${ROOT}${where}`))
    .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
    .reduce((sum, { count }) => sum + count, 0);
}
