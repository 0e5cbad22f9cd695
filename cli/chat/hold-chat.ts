/** A chat, from the first message to the last. */
import { CommandError, type CommandContext, type Terminal } from '../command.ts';
import type { LineEditor } from '../line-editor.ts';
import { requireLiveServer } from '../live-server.ts';
import { askModel, type Answer } from './ask-model.ts';
import { findChatCommand, isChatCommand, type Chat } from './chat-commands.ts';
import { withMessage, type ChatMessage, type Conversation } from './conversation.ts';

type Edit = NonNullable<Terminal['edit']>;

/** Ends when the person leaves, or the program is to end. What fails is said, and the chat goes on. */
export async function holdChat(conversation: Conversation, edit: Edit, context: CommandContext): Promise<void> {
  const { terminal } = context;
  terminal.say(`You talk with ${conversation.model}. /help lists what there is besides; Ctrl-D leaves.`);
  const editor = edit({
    prompt: '>>> ',
    continuation: '... ',
    onIdleInterrupt: () => terminal.say('\nCtrl-D or /exit leaves.'),
  });
  const chat: Chat = { conversation, attached: '', hasLeft: false };
  try {
    while (!chat.hasLeft) {
      const message = await editor.read();
      if (message === undefined) break;
      await withFailuresSaid(context, () => take(message, chat, { editor, context }));
    }
  } finally {
    editor.close();
  }
  // Ctrl-D leaves the prompt standing.
  if (!chat.hasLeft) terminal.write('\n');
}

interface Place {
  readonly editor: LineEditor;
  readonly context: CommandContext;
}

async function take(message: string, chat: Chat, { editor, context }: Place): Promise<void> {
  if (message.trim() === '') return;
  if (isChatCommand(message)) return findChatCommand(message).run(chat, context);
  const question: ChatMessage = { role: 'user', content: chat.attached + message.trim() };
  const asked = withMessage(chat.conversation, question);
  const content = await editor.whileBusy((interrupted) => answer(asked, interrupted, context));
  // An answer that was stopped stands on the screen, and so both remember it.
  chat.conversation = withMessage(asked, { role: 'assistant', content });
  chat.attached = '';
}

/** @returns what of it came, where it is stopped */
async function answer(asked: Conversation, interrupted: AbortSignal, context: CommandContext): Promise<string> {
  const { terminal, home, stop } = context;
  const signal = AbortSignal.any([interrupted, stop]);
  const screen = answerOnScreen(terminal);
  terminal.rewrite?.(`${asked.model} ...`);
  try {
    const whole = await askModel(await requireLiveServer(home), asked, { signal, ...screen });
    screen.end();
    sayHowItEnded(whole, terminal);
    return whole.content;
  } catch (error) {
    screen.end();
    if (!signal.aborted) throw error;
    terminal.say([{ text: 'Stopped.', style: 'faint' }]);
    return screen.text();
  }
}

function sayHowItEnded({ finishReason, content }: Answer, terminal: Terminal): void {
  if (finishReason === 'length') terminal.say('The answer was cut off: the context is full. /clear begins a new one.');
  else if (content === '') terminal.say('The model said nothing.');
}

/** Shows an answer as it comes: what the model thinks is faint, and above it. */
function answerOnScreen(terminal: Terminal) {
  let [shown, last, text]: [undefined | 'text' | 'reasoning', string, string] = [undefined, '', ''];
  const show = (kind: 'text' | 'reasoning', piece: string): void => {
    if (shown === undefined) terminal.rewrite?.('');
    else if (shown !== kind) terminal.write('\n\n');
    shown = kind;
    last = piece;
    terminal.write(kind === 'text' ? piece : [{ text: piece, style: 'faint' }]);
  };
  return {
    onText(piece: string): void {
      text += piece;
      show('text', piece);
    },
    onReasoning: (piece: string): void => show('reasoning', piece),
    end(): void {
      if (shown === undefined) terminal.rewrite?.('');
      else if (!last.endsWith('\n')) terminal.write('\n');
    },
    /** What came of the answer itself. */
    text: () => text,
  };
}

async function withFailuresSaid({ terminal, stop }: CommandContext, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (stop.aborted) return;
    if (!(error instanceof CommandError)) throw error;
    terminal.say([{ text: error.message, style: 'bad' }]);
  }
}
