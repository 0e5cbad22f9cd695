/** `postern run`: one question, one answer, for scripts and pipes. */
import { askModel, type Answer } from '../chat/ask-model.ts';
import { chooseModel } from '../chat/choose-model.ts';
import { startConversation, withMessage } from '../chat/conversation.ts';
import { decodeText, MAX_PROMPT_BYTES, readFilePart } from '../chat/prompt-text.ts';
import {
  READER_LEFT,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { requireLiveServer } from '../live-server.ts';

export const run: Command = {
  name: 'run',
  summary: 'ask a model one question, also in a pipe',
  usage: `Usage: postern run [--model ID] [--system TEXT] [--file PATH]... [--max-tokens N] [--json] [PROMPT]
       COMMAND | postern run [options] [PROMPT]

Asks the running service, and writes the answer to stdout as it comes, and nothing else. What is piped in follows the
prompt, or is the prompt. Exit code 0 when the answer is whole, 1 when it is not; why goes to stderr.

  -m, --model ID     which one (default: the one that is loaded, or the only one; "postern models list" shows them)
  -s, --system TEXT  what the model is told before the prompt
  -f, --file PATH    a text file that the prompt is about; may be given more than once
  --max-tokens N     ends the answer after so many tokens
  --json             one JSON object when the answer is whole: model, content, finish_reason, input_tokens, output_tokens

In a loop that reads a file, say "postern run ... < /dev/null": it would read the rest of the file.

Example:
  git diff --staged | postern run "Write a commit message for this change."
`,
  options: {
    model: { type: 'string', short: 'm' },
    system: { type: 'string', short: 's' },
    file: { type: 'string', short: 'f', multiple: true },
    'max-tokens': { type: 'string' },
    json: { type: 'boolean' },
  },
  run: runOnce,
};

async function runOnce(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { flags } = input;
  const { terminal, stop } = context;
  const maxTokens = tokensOf(flags['max-tokens']);
  const content = await readPrompt(input, context);
  if (stop.aborted) return interrupted(context);
  const server = await requireLiveServer(context.home);
  const model = await chooseModel(server, textOf(flags['model']));
  const conversation = withMessage(startConversation(model, textOf(flags['system'])), { role: 'user', content });
  const asJson = flags['json'] === true;
  const onText = asJson ? () => undefined : (text: string) => terminal.write(text);
  try {
    const answer = await askModel(server, conversation, { signal: stop, maxTokens, onText });
    if (asJson) terminal.print(JSON.stringify(resourceOf(model, answer)));
    else if (!answer.content.endsWith('\n')) terminal.write('\n');
    if (answer.finishReason === 'length') terminal.say('postern: the answer was cut off: it is as long as it may be.');
    return 0;
  } catch (error) {
    if (stop.aborted) return interrupted(context);
    throw error;
  }
}

function resourceOf(model: string, { content, finishReason, inputTokens, outputTokens }: Answer): object {
  return { model, content, finish_reason: finishReason, input_tokens: inputTokens, output_tokens: outputTokens };
}

function interrupted({ stop, terminal }: CommandContext): ExitCode {
  if (stop.reason === READER_LEFT) return 0;
  terminal.say('Stopped.');
  return 1;
}

/** @throws {UsageError} where there is nothing to ask; {CommandError} for what is no text */
async function readPrompt({ flags, positionals }: CommandInput, { terminal }: CommandContext): Promise<string> {
  const piped = await terminal.readPiped(MAX_PROMPT_BYTES);
  const texts = [positionals.join(' '), piped === undefined ? '' : decodeText(piped, 'what is piped in')];
  const asked = texts.map((text) => text.trimEnd()).filter((text) => text !== '');
  if (asked.length === 0) throw new UsageError('there is no prompt. Say it after "run", or pipe it in.');
  const paths = Array.isArray(flags['file']) ? flags['file'].map(String) : [];
  const files = await Promise.all(paths.map(readFilePart));
  return [...files, asked.join('\n\n')].join('');
}

function textOf(flag: CommandInput['flags'][string]): string | undefined {
  return typeof flag === 'string' && flag !== '' ? flag : undefined;
}

function tokensOf(flag: CommandInput['flags'][string]): number | undefined {
  if (flag === undefined) return undefined;
  if (typeof flag === 'string' && /^[1-9]\d{0,6}$/.test(flag)) return Number(flag);
  throw new UsageError(`--max-tokens: "${String(flag)}" is not a number of tokens.`);
}
