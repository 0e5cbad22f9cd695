import type { NextWords } from './next-words.ts';

/** @returns a script for bash to read, from 3.2 on */
export function bashCompletion(next: readonly NextWords[]): string {
  return `# Completes postern in bash: source <(postern completion bash)
_postern() {
  local current=\${COMP_WORDS[COMP_CWORD]} command='' action='' word words='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case $word in -*) continue ;; esac
    if [ -z "$command" ]; then command=$word; elif [ -z "$action" ]; then action=$word; fi
  done
  case "$command $action" in
${bySpecificity(next).map(caseOf).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _postern postern
`;
}

/** An action goes before its command, which stands for whatever else follows. */
function bySpecificity(next: readonly NextWords[]): readonly NextWords[] {
  return next.toSorted((a, b) => b.after.length - a.after.length);
}

function caseOf({ after: [command = '', action], words, options }: NextWords): string {
  const pattern = command === '' ? "' '" : action === undefined ? `'${command} '*` : `'${command} ${action}'`;
  const all = [...words.map(({ word }) => word), ...options.map(({ name }) => `--${name}`)];
  return `    ${pattern}) words='${all.join(' ')}' ;;`;
}
