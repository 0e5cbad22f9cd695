import type { NextOption, NextWords } from './next-words.ts';

/** @returns a script for fish to read */
export function fishCompletion(next: readonly NextWords[]): string {
  return `# Completes postern in fish: postern completion fish | source
${next.flatMap((one) => linesOf(one, next)).join('\n')}
`;
}

function linesOf({ after, words, options }: NextWords, next: readonly NextWords[]): readonly string[] {
  const condition = conditionOf(after, next);
  const begin = `complete -c postern -n ${quoted(condition)}`;
  return [
    ...words.map(({ word, meaning }) => `${begin} -f -a ${word}${meaning === '' ? '' : ` -d ${quoted(meaning)}`}`),
    ...options.map((option) => `${begin}${optionText(option)}`),
  ];
}

function conditionOf([command, action]: NextWords['after'], next: readonly NextWords[]): string {
  if (command === undefined) return '__fish_use_subcommand';
  if (action !== undefined) return `__fish_seen_subcommand_from ${command}; and __fish_seen_subcommand_from ${action}`;
  const actions = next.flatMap(({ after }) => (after[0] === command && after[1] !== undefined ? [after[1]] : []));
  const begin = `__fish_seen_subcommand_from ${command}`;
  return actions.length === 0 ? begin : `${begin}; and not __fish_seen_subcommand_from ${actions.join(' ')}`;
}

function optionText({ name, short, takesValue }: NextOption): string {
  return ` -l ${name}${short === undefined ? '' : ` -s ${short}`}${takesValue ? ' -r' : ' -f'}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
