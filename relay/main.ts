/** The relay alone, on a box that has nothing else of Postern: `node dist/relay/main.js --listen HOST:PORT`. */
import { parseArgs } from 'node:util';
import { RELAY_FLAGS, RelayStartError, relayUsage, RelayUsageError, runRelay } from './run-relay.ts';

const NAME = 'postern-relay';
const [stop, stopNow] = [new AbortController(), new AbortController()];
const onSignal = (): void => (stop.signal.aborted ? stopNow : stop).abort();
process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);
// Words may be lost, on a disk that is full; data may not, but for a reader that has seen enough (`| head`).
process.stderr.on('error', () => undefined);
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  stop.abort();
  if (code === 'EPIPE') return;
  process.exitCode = 1;
  process.stderr.write(`${NAME}: what it prints can't be written (${code}).\n`);
});
const exitCode = await main(process.argv.slice(2));
process.exitCode ||= exitCode;
process.off('SIGINT', onSignal);
process.off('SIGTERM', onSignal);

async function main(args: string[]): Promise<number> {
  const say = (line: string): void => void process.stderr.write(`${NAME}: ${line}\n`);
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    const { values } = parseArgs({ args, options: { ...RELAY_FLAGS, help: { type: 'boolean', short: 'h' } } });
    if (values.help === true) print(relayUsage(NAME));
    else await runRelay({ flags: values, say, print, stop: stop.signal, stopNow: stopNow.signal });
    return 0;
  } catch (error) {
    const isMisuse =
      error instanceof RelayUsageError ||
      (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
    if (!isMisuse && !(error instanceof RelayStartError)) throw error;
    say(isMisuse ? `${error.message}\n"${NAME} --help" tells more.` : error.message);
    return isMisuse ? 2 : 1;
  }
}
