/** `postern models`: finds the action; each has a file of its own in `models/`. */
import { noun } from '../actions.ts';
import type { Command } from '../command.ts';
import { aliasModel } from './models/alias.ts';
import { listModels } from './models/list.ts';
import { loadedModels, loadModel, unloadModel } from './models/loaded.ts';
import { pullModel } from './models/pull.ts';
import { removeModel } from './models/remove.ts';
import { showModel } from './models/show.ts';

export const models: Command = noun({
  name: 'models',
  summary: 'list, show, fetch, remove, load and unload models',
  usage: `Usage: postern models [list] [--json]
       postern models show <id> [--json]
       postern models pull <what> [--yes] [--sha256 HEX]
       postern models rm <id> [--yes]
       postern models ps [--json]
       postern models load <id> [--json]
       postern models unload <id> [--json]
       postern models alias [<name> <id>] [--json]
       postern models alias <name> --remove

list   every model on this machine: size, whose it is, quantization, context, and whether it fits in memory
show   all that is known of one
pull   fetch one into the models folder; run it again to go on where it stopped. A running service does the fetching,
         and goes on when this terminal closes; Ctrl-C stops it. <what> is
         hf:org/repository          the hub's usual 4-bit version of it
         hf:org/repository:Q8_0     another one; an unknown one lists what there is
         https://host/file.gguf     any file
ps     what the running service has loaded: memory, context, calls, and when each will be unloaded
load   have it load one before anybody asks; unload gives its memory back, once the calls under way are done
alias  let a model answer to another name, at once: 'claude-*' is every name that begins so, '*' every other name
rm     remove one that is in the models folder; models of LM Studio and Ollama are theirs to remove

  --json          one JSON document on stdout
  -y, --yes       don't ask
  --remove        take the name away
  --sha256 HEX    what the file's SHA-256 must be, where the server does not say

HF_TOKEN holds a token for gated models; it goes to the hub and nobody else. HF_ENDPOINT names a mirror of the hub.

Example:
  postern models pull hf:Qwen/Qwen3-8B-GGUF
  postern models list
  postern models alias 'gpt-*' Qwen3-8B-Q4_K_M
  postern models show foundation --json
`,
  options: {
    json: { type: 'boolean' },
    yes: { type: 'boolean', short: 'y' },
    remove: { type: 'boolean' },
    sha256: { type: 'string' },
  },
  actions: {
    list: { options: ['json'], run: listModels },
    show: { options: ['json'], run: showModel },
    pull: { options: ['yes', 'sha256'], run: pullModel },
    ps: { options: ['json'], run: loadedModels },
    load: { options: ['json'], run: loadModel },
    unload: { options: ['json'], run: unloadModel },
    rm: { options: ['yes'], run: removeModel },
    alias: { options: ['remove', 'json'], run: aliasModel },
  },
  usual: 'list',
});
