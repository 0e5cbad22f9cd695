import type { NextWords } from './next-words.ts';

/** @returns a script for zsh to read, or to find as `_postern` */
export function zshCompletion(next: readonly NextWords[]): string {
  return `#compdef postern
# Completes postern in zsh: source <(postern completion zsh), after compinit
_postern() {
  local command='' action='' word
  local -a next
  for word in \${words[2,CURRENT-1]}; do
    [[ $word == -* ]] && continue
    if [[ -z $command ]]; then command=$word; elif [[ -z $action ]]; then action=$word; fi
  done
  case "$command $action" in
${next
  .toSorted((a, b) => b.after.length - a.after.length)
  .map(caseOf)
  .join('\n')}
  esac
  _describe postern next || _files
}
if [[ $funcstack[1] == _postern ]]; then _postern "$@"; else compdef _postern postern; fi
`;
}

function caseOf({ after: [command = '', action], words, options }: NextWords): string {
  const pattern = command === '' ? "' '" : action === undefined ? `'${command} '*` : `'${command} ${action}'`;
  const described = words.map(({ word, meaning }) => quoted(meaning === '' ? word : `${word}:${meaning}`));
  return `    ${pattern}) next=(${[...described, ...options.map(({ name }) => `--${name}`)].join(' ')}) ;;`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
