/** Asks before something is done that can't be undone, or that makes little sense. */
import { CommandError, type Terminal } from './command.ts';

interface ConfirmOptions {
  readonly question: string;
  /** `--yes` was given. */
  readonly isSure: boolean;
}

/** @throws {CommandError} where nobody can be asked */
export async function confirm({ question, isSure }: ConfirmOptions, { ask }: Terminal): Promise<boolean> {
  if (isSure) return true;
  if (ask === undefined) throw new CommandError(`${question} Nobody is here to say so: --yes does.`);
  return /^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim());
}
