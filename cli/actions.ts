/** Commands that are a noun and a verb, such as `keys revoke`. */
import { UsageError, type Action, type Command, type CommandOptions } from './command.ts';
import { didYouMean } from './did-you-mean.ts';

interface NounOptions extends Omit<Command, 'run' | 'actions'> {
  readonly options: CommandOptions;
  /** By their names. */
  readonly actions: Readonly<Record<string, Action>>;
  /** What the noun by itself means: the name of an action, or one that has no name. */
  readonly usual?: string | Action;
}

/** As shells call it. */
const SHORT: Readonly<Record<string, string>> = { ls: 'list' };

/** @returns a command that finds the action, and refuses options that this one does not understand */
export function noun({ actions, usual, ...command }: NounOptions): Command {
  const { name } = command;
  const byName = new Map(Object.entries(actions));
  return {
    ...command,
    actions: byName,
    async run({ flags, positionals: [first, ...rest] }, context) {
      const actionName = first ?? (typeof usual === 'string' ? usual : undefined);
      const action =
        actionName === undefined && typeof usual === 'object'
          ? usual
          : byName.get(SHORT[actionName ?? ''] ?? actionName ?? '');
      if (action === undefined) throw unknownAction(first, byName);
      const other = Object.keys(flags).find((flag) => !action.options.includes(flag));
      if (other !== undefined)
        throw new UsageError(`"${[name, actionName].filter(Boolean).join(' ')}" has no option --${other}.`);
      return action.run({ flags, positionals: rest }, context);
    },
  };
}

const listFormat = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** What was typed is not quoted: it could be a key. */
function unknownAction(typed: string | undefined, actions: ReadonlyMap<string, Action>): UsageError {
  const known = [...actions.keys()];
  const near = typed === undefined ? '' : didYouMean(typed, known);
  return new UsageError(`say ${listFormat.format(known.map((action) => `"${action}"`))}.${near}`);
}

/** @throws {UsageError} for an argument too many, which is not quoted: it could be a key */
export function refuseMore(positionals: readonly string[]): void {
  if (positionals.length > 0) throw new UsageError('there is an argument too many.');
}
