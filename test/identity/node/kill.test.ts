/** `kill -9` at any moment of making and revoking keys: what was acknowledged is so. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listAuditRecords } from '../../../core/audit/audit-log.ts';
import { isThorough } from '../../support/sampling.ts';
import { temporaryHome } from './home.ts';
import { openKeys } from './keys-of-home.ts';
import { auditEvents } from '../../../service/audit-events.ts';

const program = fileURLToPath(new URL('../../../dist/test/identity/node/churn-program.js', import.meta.url));
const ROUNDS = isThorough ? 200 : 20;
/** On a busy machine, when thorough; it only turns a hang into a failure. */
const LONG = { timeout: 900_000 };

let home: string;
let remove: () => void;
beforeEach(() => ({ home, remove } = temporaryHome()));
afterEach(() => remove());

/** Kills after the given number of acknowledgements. @returns all that were given by then */
async function churn(untilAcknowledged: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [program, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    acknowledged.push(line);
    if (acknowledged.length === untilAcknowledged) child.kill('SIGKILL');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  return acknowledged;
}

test(`${ROUNDS} times: every key that was acknowledged counts or is revoked, and the log has it`, LONG, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledged = await churn(1 + Math.floor(Math.random() * 40));
    const { database, keys, verifyAudit } = openKeys(home);
    const said = new Map<string, string>();
    for (const line of acknowledged) {
      const [word, token] = line.split(' ') as [string, string];
      said.set(token, word);
    }
    const tokens = [...said.keys()];
    for (const [at, token] of tokens.entries()) {
      const verdict = keys.verify(token);
      if (said.get(token) === 'revoked') expect(verdict).toMatchObject({ counts: false, refusal: 'revoked' });
      // Of the last one the revocation may be done and not acknowledged yet.
      else if (at < tokens.length - 1) expect(verdict.counts).toBe(true);
      else expect(verdict.counts || verdict.refusal === 'revoked').toBe(true);
    }
    expect(verifyAudit()).toMatchObject({ intact: true });
    const told = listAuditRecords({ database, events: auditEvents }, { limit: 1_000_000 }).map(({ entry }) =>
      entry?.kind === 'key_created' || entry?.kind === 'key_revoked' ? `${entry.kind} ${entry.kid}` : '',
    );
    const done = keys
      .list()
      .flatMap(({ kid, revokedAtS }) => [
        `key_created ${kid}`,
        ...(revokedAtS === undefined ? [] : [`key_revoked ${kid}`]),
      ]);
    expect(told.toSorted()).toEqual(done.toSorted());
    database.close();
  }
});
