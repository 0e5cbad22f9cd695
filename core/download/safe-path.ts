/** Names that come from elsewhere, as they may be used below a folder of ours. */

/** Longer than any model's, shorter than what every file system takes, `.part.state` at the end included. */
const MAX_NAME_LENGTH = 200;

/** Also refused: what Windows refuses, and what a terminal would obey. */
// oxlint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\\/:*?"<>|]/;

/** @returns the path's names; undefined for one that could lead out of the folder, or hide in it */
export function safeNames(path: string): readonly string[] | undefined {
  const names = path.split('/');
  return names.every(isSafeName) ? names : undefined;
}

function isSafeName(name: string): boolean {
  const isPlain = name !== '' && !name.startsWith('.') && name.length <= MAX_NAME_LENGTH;
  return isPlain && !FORBIDDEN.test(name) && name === name.trim();
}
