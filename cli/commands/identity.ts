/** `postern identity`: shows, backs up and restores what this gateway is known by. */
import { mkdir } from 'node:fs/promises';
import { createAuditLog } from '../../core/audit/audit-log.ts';
import { auditEvents } from '../../service/audit-events.ts';
import { lockHome } from '../../core/config/home.ts';
import { openDatabase } from '../../storage/database.ts';
import { createAuditSeal } from '../../identity/audit-seal.ts';
import { findBackup, formatBackup } from '../../identity/recovery-phrase.ts';
import { gatewayFingerprint } from '../../identity/gateway-name.ts';
import { openIdentity, type Identity } from '../../identity/node/open-identity.ts';
import { restoreIdentity } from '../../identity/node/restore-identity.ts';
import type { MasterKey } from '../../identity/secret-keys.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { identityOptions } from '../../service/identity-options.ts';

export const identity: Command = noun({
  name: 'identity',
  summary: 'show, back up and restore the identity',
  usage: `Usage: postern identity [show] [--json]
       postern identity backup [--yes]
       postern identity restore - [--replace]

  show      the address, the gateway's id, and where the secrets are kept
  backup    prints 24 words, which are the master key
  restore   reads the 24 words from standard input

  --json      one JSON object on stdout
  --yes       print the words although it is no terminal that reads them
  --replace   put the restored identity in the place of another, or of one that is damaged

Restoring brings back the addresses and the keys behind them. It does not bring back pairings: devices are paired again.

Example:
  postern identity restore - < words.txt
`,
  options: { json: { type: 'boolean' }, yes: { type: 'boolean' }, replace: { type: 'boolean' } },
  actions: {
    show: { options: ['json'], run: show },
    backup: { options: ['yes'], run: backup },
    restore: { options: ['replace'], run: restore },
  },
  usual: 'show',
});

async function show({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const { terminal } = context;
  const opened = await openIdentity(await identityOptions(context));
  const { masterAddress: address, store } = opened;
  const gatewayId = gatewayFingerprint(opened.gatewayKey());
  if (flags['json'] === true) terminal.print(JSON.stringify({ address, gateway_id: gatewayId, store: store.kind }));
  else terminal.print(`address  ${address}\ngateway  ${gatewayId}\n${store.description}`);
  return 0;
}

async function backup({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const { terminal } = context;
  if (!terminal.isInteractive && flags['yes'] !== true) {
    throw new UsageError('stdout is not a terminal. Use --yes to print the words all the same.');
  }
  const opened = await openIdentity(await identityOptions(context));
  terminal.say(
    `These 24 words are the master key of ${opened.masterAddress}. Whoever reads them can make keys in its name.\n` +
      'Write them down on paper, in this order, and show them to nobody. They bring back the addresses and the keys\n' +
      'behind them; they do not bring back pairings.',
  );
  terminal.print(formatBackup(opened.masterKey()));
  return 0;
}

async function restore({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { terminal, home } = context;
  const mayReplace = flags['replace'] === true;
  if (positionals.length !== 1 || positionals[0] !== '-') {
    throw new UsageError('the words come from standard input, never from the command line. Say "restore -".');
  }
  const master = await readWords(context);
  await mkdir(home, { recursive: true, mode: 0o700 });
  const lock = lockHome(home);
  if (lock === undefined) throw new CommandError('the service is running. Stop it first: "postern stop".');
  try {
    const restored = await restoreIdentity(master, { ...(await identityOptions(context)), mayReplace });
    recordRestoring(home, restored);
    terminal.say(
      `Restored. ${restored.store.description}\n` +
        'This brought back the addresses and the keys behind them. It did not bring back pairings: pair your devices\n' +
        'again. Access keys that were made before count only where state.db, which lists them, was kept too.',
    );
    terminal.print(restored.masterAddress);
  } finally {
    lock.release();
  }
  return 0;
}

async function readWords({ terminal }: CommandContext): Promise<MasterKey> {
  const master = findBackup(await terminal.read('The 24 words, in one line:'));
  if (master !== undefined) return master;
  throw new CommandError(
    'these are not the 24 words of a backup: a word is missing, misspelled or in another place. Nothing was changed.',
  );
}

function recordRestoring(home: string, restored: Identity): void {
  const database = openDatabase(home);
  try {
    const log = createAuditLog({
      database,
      events: auditEvents,
      seal: createAuditSeal(restored.auditKey()),
      now: Date.now,
    });
    log.append({ kind: 'identity_restored', address: restored.masterAddress });
  } finally {
    database.close();
  }
}
