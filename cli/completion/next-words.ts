/** What may stand next on the command line: from the commands themselves, for the completion of each shell. */
import type { Command } from '../command.ts';

/** After these words. */
export interface NextWords {
  /** The command and its action; of neither, the commands themselves come next. */
  readonly after: readonly [] | readonly [command: string] | readonly [command: string, action: string];
  /** Commands, actions, and words that an action takes. */
  readonly words: readonly NextWord[];
  readonly options: readonly NextOption[];
}

export interface NextWord {
  readonly word: string;
  readonly meaning: string;
}

export interface NextOption {
  /** Without its two dashes. */
  readonly name: string;
  readonly short: string | undefined;
  readonly takesValue: boolean;
}

export function nextWords(commands: readonly Command[]): readonly NextWords[] {
  const names = commands.map(({ name, summary }) => ({ word: name, meaning: summary }));
  const top = { after: [] as const, words: [...names, { word: 'help', meaning: 'this list' }], options: [HELP] };
  return [top, ...commands.flatMap(afterCommand)];
}

const HELP: NextOption = { name: 'help', short: 'h', takesValue: false };

function afterCommand({ name, options, actions = new Map() }: Command): readonly NextWords[] {
  const optionsOf = (names: readonly string[]): readonly NextOption[] => [
    ...names.map((one) => ({ name: one, short: options[one]?.short, takesValue: options[one]?.type === 'string' })),
    HELP,
  ];
  const words = [...actions.keys()].map((word) => ({ word, meaning: '' }));
  return [
    { after: [name], words, options: optionsOf(Object.keys(options)) },
    ...[...actions].map(([action, { options: own, words: taken = [] }]) => ({
      after: [name, action] as const,
      words: taken.map((word) => ({ word, meaning: '' })),
      options: optionsOf(own),
    })),
  ];
}
