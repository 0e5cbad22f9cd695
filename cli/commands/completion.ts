/** `postern completion`: what a shell needs to complete the command line, made from the commands themselves. */
import { noun, refuseMore } from '../actions.ts';
import type { Action, Command } from '../command.ts';
import { bashCompletion } from '../completion/bash.ts';
import { fishCompletion } from '../completion/fish.ts';
import { nextWords, type NextWords } from '../completion/next-words.ts';
import { zshCompletion } from '../completion/zsh.ts';

/** @param allCommands those that are completed, this one among them */
export function completion(allCommands: () => Promise<readonly Command[]>): Command {
  const printing = (script: (next: readonly NextWords[]) => string): Action => ({
    options: [],
    async run({ positionals }, { terminal }) {
      refuseMore(positionals);
      terminal.write(script(nextWords(await allCommands())));
      return 0;
    },
  });
  return noun({
    name: 'completion',
    summary: 'let your shell complete commands, options and settings',
    usage: `Usage: postern completion bash|zsh|fish

Prints a script that lets the shell complete commands, their options and the names of settings. So that each new shell
reads it:

  bash   echo 'source <(postern completion bash)' >> ~/.bashrc
  zsh    echo 'source <(postern completion zsh)' >> ~/.zshrc        (after compinit)
  fish   postern completion fish > ~/.config/fish/completions/postern.fish

Example:
  source <(postern completion bash)
`,
    options: {},
    usesHome: false,
    actions: {
      bash: printing(bashCompletion),
      zsh: printing(zshCompletion),
      fish: printing(fishCompletion),
    },
  });
}
