/** `postern chat`: a conversation with a model, at a terminal. */
import { chooseModel } from '../chat/choose-model.ts';
import { startConversation } from '../chat/conversation.ts';
import { holdChat } from '../chat/hold-chat.ts';
import { UsageError, type Command } from '../command.ts';
import { requireLiveServer } from '../live-server.ts';

export const chat: Command = {
  name: 'chat',
  summary: 'talk with a model',
  usage: `Usage: postern chat [--system TEXT] [MODEL]

Talks with a model of the running service: the one that is named, else the one that is loaded, or the only one. Ctrl-C
stops an answer, Ctrl-D leaves. A message of several lines stands between two """, or each line but its last ends with
a backslash; what is pasted is taken as it stands. Commands begin with "/": /help lists them.

What is said is kept in memory and goes with the program. /save writes it into a file, for you alone to read.

  -s, --system TEXT  what the model is told before all else

For scripts and pipes there is "postern run".

Example:
  postern chat foundation
`,
  options: { system: { type: 'string', short: 's' } },
  async run({ flags, positionals: [wanted, ...rest] }, context) {
    if (rest.length > 0) throw new UsageError(`"chat" takes one model, not "${[wanted, ...rest].join(' ')}".`);
    const { terminal, home } = context;
    if (terminal.edit === undefined) {
      throw new UsageError('"chat" needs a terminal to type at. In a script or a pipe: postern run "..."');
    }
    const model = await chooseModel(await requireLiveServer(home), wanted);
    const system = typeof flags['system'] === 'string' ? flags['system'] : undefined;
    await holdChat(startConversation(model, system), terminal.edit, context);
    return 0;
  },
};
