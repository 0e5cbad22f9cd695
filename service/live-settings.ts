/** The settings while the service runs: what can follow them asks for them each time, and no restart is needed. */
import { stat } from 'node:fs/promises';
import { SettingsError, settingsPath } from '../core/config/settings.ts';

interface FollowOptions<Settings> {
  /** `SVC_HOME`. */
  readonly home: string;
  /** Those that the service started with. */
  readonly initial: Settings;
  /** As the file and whatever goes before it say now. @throws {SettingsError} */
  readonly read: () => Promise<Settings>;
  /** A line for the owner. */
  readonly say: (words: string) => void;
}

/**
 * Looks at the file's date, and reads it where that has changed. A file that can't be used changes nothing, which is
 * said once.
 */
export function followSettings<Settings>({
  home,
  initial,
  read,
  say,
}: FollowOptions<Settings>): () => Promise<Settings> {
  const path = settingsPath(home);
  let seen: string | undefined;
  let current: () => Promise<Settings> = async () => initial;
  const reread = async (before: () => Promise<Settings>): Promise<Settings> => {
    try {
      return await read();
    } catch (error) {
      say(
        `postern: ${error instanceof SettingsError ? error.message : `${path} can't be read.`} All settings stay as they were.`,
      );
      return before();
    }
  };
  return async () => {
    const stamp = await stampOf(path);
    if (stamp !== seen) {
      seen = stamp;
      const next = reread(current);
      current = () => next;
    }
    return current();
  };
}

/** A change is a rename: another file, whatever its date. */
async function stampOf(path: string): Promise<string> {
  const file = await stat(path, { bigint: true }).catch(() => undefined);
  return file === undefined ? 'none' : `${file.ino} ${file.mtimeNs} ${file.size}`;
}
