/** `kill -9` in the middle of changes to settings: the file is whole, the audit log is, and it has what was acknowledged. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listAuditRecords } from '../../core/audit/audit-log.ts';
import { readSettingsFile } from '../../service/settings.ts';
import { openDatabase } from '../../storage/database.ts';
import { openOrCreateIdentity } from '../../identity/node/open-identity.ts';
import { storeOptions } from '../identity/node/home.ts';
import { isThorough } from '../support/sampling.ts';
import { runCli } from '../support/server.ts';
import { auditEvents } from '../../service/audit-events.ts';

const program = fileURLToPath(new URL('../../dist/test/cli/settings-storm-program.js', import.meta.url));
const ROUNDS = isThorough ? 200 : 20;
/** On a busy machine, when thorough; it only turns a hang into a failure. */
const LONG = { timeout: 900_000 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-storm-'));
  await openOrCreateIdentity(storeOptions(home));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** Kills after the given number of acknowledgements. @returns the values that were acknowledged by then */
async function storm(name: string, first: number, untilAcknowledged: number): Promise<readonly number[]> {
  const child = spawn(process.execPath, [program, home, name, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged: number[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    acknowledged.push(Number(line));
    if (acknowledged.length === untilAcknowledged) child.kill('SIGKILL');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  return acknowledged;
}

function countEntries(): number {
  const database = openDatabase(home);
  try {
    const entries = listAuditRecords({ database, events: auditEvents }, { limit: 1_000_000 }).map(({ entry }) => entry);
    expect(new Set(entries.map((entry) => JSON.stringify(entry)))).toEqual(
      new Set(['{"kind":"setting_changed","name":"server.port"}']),
    );
    return entries.length;
  } finally {
    database.close();
  }
}

test(`${ROUNDS} times: what was acknowledged stands in the file and in the log, and both are whole`, LONG, async () => {
  let port = 0;
  let entries = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledged = await storm('server.port', port + 1, 1 + Math.floor(Math.random() * 20));
    const last = acknowledged.at(-1)!;
    const found = Number((await readSettingsFile(home))['server.port']);
    // The next change may be done and not acknowledged.
    expect([last, last + 1]).toContain(found);
    const told = countEntries() - entries;
    expect([acknowledged.length, acknowledged.length + 1]).toContain(told);
    const verdict = await runCli(['audit', 'verify'], { SVC_HOME: home });
    expect(verdict).toMatchObject({ code: 0, stdout: `The audit log is intact (${entries + told} entries).\n` });
    port = found;
    entries += told;
  }
});

test('two at once take nothing from each other', LONG, async () => {
  const names = ['server.port', 'sampling.maxTokens'];
  const acknowledged = await Promise.all(names.map((name) => storm(name, 1, 60)));
  const file = await readSettingsFile(home);
  for (const [at, name] of names.entries()) {
    const last = acknowledged[at]!.at(-1)!;
    expect([last, last + 1]).toContain(file[name]);
  }
  expect(await runCli(['audit', 'verify'], { SVC_HOME: home })).toMatchObject({ code: 0 });
});
