/** Says when the way home changes, for the owner to know: being in the same network is what is expected, and not told. */
import type { PathDescription } from '../sdk/index.ts';

/** @returns what is to be told of the way that was found last, as often as one likes */
export function watchPath(say: (words: string) => void): (path: PathDescription | undefined) => void {
  let known = 'lan';
  return (path) => {
    if (path === undefined) return;
    const next = path.kind === 'lan' ? 'lan' : path.url;
    if (next === known) return;
    known = next;
    say(next === 'lan' ? 'In the same network as home now.' : `Through the relay ${next} now.`);
  };
}
