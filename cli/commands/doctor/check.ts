/** What a check of `postern doctor` is: a name, and a function that looks and tells what it found. It changes nothing. */
import type { Settings } from '../../../service/settings.ts';
import type { LiveServer } from '../../live-server.ts';

export interface Check {
  /** A word or two, for the first column. */
  readonly name: string;
  /** One that throws has failed, and its error's message is shown. */
  run(machine: CheckedMachine): Promise<Finding> | Finding;
}

export interface Finding {
  /** `warning`: it works, but its owner should know. `failed`: it does not work, or not safely. */
  readonly state: 'ok' | 'warning' | 'failed';
  /** A sentence without a final stop. */
  readonly message: string;
  /** What to do about it, where something is to be done. */
  readonly remedy?: string;
}

/** What checks look at. */
export interface CheckedMachine {
  /** `SVC_HOME`; it may not exist yet. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** As the next start of the service would find them. */
  readonly settings: Settings;
  /** The running service, if there is one. */
  readonly server: LiveServer | undefined;
}
