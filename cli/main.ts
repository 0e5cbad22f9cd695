/** The command line: finds the command, reads its flags, and turns every outcome into words and an exit code. */
import { parseArgs } from 'node:util';
import { SettingsError } from '../core/config/settings.ts';
import { HomeError } from '../core/config/home-error.ts';
import { homeFolder } from '../core/config/home.ts';
import { secureHome } from '../core/config/secure-home.ts';
import { NewerDatabaseError } from '../storage/schema-versions.ts';
import { IdentityError } from '../identity/node/secret-store.ts';
import { StartError } from '../service/start.ts';
import { CommandError, READER_LEFT, UsageError, type Command, type CommandContext, type ExitCode } from './command.ts';
import { allCommands, commandNames, findCommand } from './commands.ts';
import { didYouMean } from './did-you-mean.ts';
import { explainDiskError } from './disk-error.ts';
import { installLastResort, internalErrorText } from '../service/internal-error.ts';
import { watchOutput } from './output-watch.ts';
import { version } from '../service/package.ts';
import { processTerminal } from './terminal.ts';

async function usage(): Promise<string> {
  const commands = await allCommands();
  return `Postern: a private gate to your own AI.

Usage: postern <command> [options]

Commands:
${commands.map((command) => `  ${command.name.padEnd(10)} ${command.summary}`).join('\n')}

  postern <command> --help   shows how to use a command
  postern --version          prints the version

Example:
  postern serve --port 4001
`;
}

/** Runs one command and ends with its exit code. */
export async function run(argv: readonly string[]): Promise<void> {
  // Whatever is made from here on is the owner's alone to read.
  process.umask(0o077);
  const [stopSignal, stopNow] = [new AbortController(), new AbortController()];
  const onSignal = (): void => (stopSignal.signal.aborted ? stopNow : stopSignal).abort();
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  const { stdout, stderr } = process;
  const output = watchOutput({
    stdout,
    stderr,
    onLost: (readerLeft) => stopSignal.abort(readerLeft ? READER_LEFT : undefined),
  });
  const environment = { ...process.env };
  // No child process needs it.
  delete process.env['SVC_VAULT_PASSPHRASE'];
  const context: CommandContext = {
    terminal: processTerminal(stopSignal.signal),
    environment,
    home: homeFolder(environment),
    stop: stopSignal.signal,
    stopNow: stopNow.signal,
  };
  installLastResort({ say: (words) => context.terminal.say(words), end: () => process.exit(1) });
  const code = await dispatch(argv, context);
  process.off('SIGINT', onSignal);
  process.off('SIGTERM', onSignal);
  await Promise.all([flushed(stdout), flushed(stderr)]);
  const loss = output.loss();
  if (loss !== undefined) context.terminal.say(`postern: the output can't be written (${loss}).`);
  process.exitCode = loss === undefined ? code : 1;
  // A connection that a library keeps alive, or is still trying to make, would hold the process up.
  process.exit();
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
}

async function dispatch([name, ...args]: readonly string[], context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    terminal.print(await usage());
    return name === undefined ? 2 : 0;
  }
  if (name === '--version' || name === '-v') {
    terminal.print(version);
    return 0;
  }
  const command = await findCommand(name);
  if (command === undefined) {
    const near = didYouMean(name, commandNames);
    terminal.say([NAME, ` there is no command "${name}".${near} "postern --help" lists them.`]);
    return 2;
  }
  return runCommand(command, args, context);
}

async function runCommand(command: Command, args: readonly string[], context: CommandContext): Promise<ExitCode> {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { ...command.options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (values['help'] === true) {
      context.terminal.print(command.usage);
      return 0;
    }
    if (command.usesHome !== false) await takeHome(context);
    return await command.run({ flags: values, positionals }, context);
  } catch (error) {
    return explain(error, command, context);
  }
}

/** Before anything in it is read or written. @throws {HomeError} */
async function takeHome({ home, terminal }: CommandContext): Promise<void> {
  const corrected = await secureHome(home, process.getuid?.());
  if (corrected.length > 0) terminal.say(`Other users had access to ${corrected.join(', ')}. Now only you have.`);
}

function explain(error: unknown, command: Command, { terminal, home }: CommandContext): ExitCode {
  if (isMisuse(error)) {
    terminal.say([NAME, ` ${misuseText(error, command)}\nSee "postern ${command.name} --help".`]);
    return 2;
  }
  const explained = isForOwner(error) ? error : explainDiskError(error, home);
  if (isForOwner(explained)) {
    terminal.say([NAME, ` ${explained.message}`]);
    return 1;
  }
  if (isSystemError(error)) {
    terminal.say([NAME, ` ${error.message}.`]);
    return 1;
  }
  terminal.say(internalErrorText(error));
  return 1;
}

/** Whose words they are, where something failed. */
const NAME = { text: 'postern:', style: 'bad' } as const;

function isMisuse(error: unknown): error is Error {
  return error instanceof UsageError || isParseArgsError(error) || (error instanceof SettingsError && error.isMisuse);
}

/** Node's own words for an option that does not exist advise on how to pass it on. */
function misuseText({ message }: Error, { options }: Command): string {
  const [, option] = /^Unknown option '([^' ]+)/.exec(message) ?? [];
  if (option === undefined) return message;
  const known = [...Object.keys(options), 'help'].map((name) => `--${name}`);
  return `there is no option ${option}.${didYouMean(option, known)}`;
}

/** Its words were written for whoever reads them, and say what to do. */
function isForOwner(error: unknown): error is Error {
  const kinds = [CommandError, StartError, SettingsError, HomeError, IdentityError, NewerDatabaseError];
  return kinds.some((kind) => error instanceof kind);
}

/** A file or folder that the system refuses: its words name the path and the reason, and nothing else. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error && 'path' in error;
}

function isParseArgsError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
}
