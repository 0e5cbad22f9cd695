/**
 * What it costs to find out whether an access key counts, against the one step of it that can't be done without: to
 * recover the signer; then one request with a key against one without, over HTTP. `node dist/bench/identity.bench.js`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { openDatabase } from '../storage/database.ts';
import { deriveAgentKey } from '../identity/agent-key.ts';
import { createAccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import { asMasterKey } from '../identity/secret-keys.ts';
import { compare } from './channel/measure.ts';
import { measureKeyedRequests } from './serving/keyed-requests.ts';

/** More than are remembered, so that each is forgotten by the time that its turn comes again. */
const MANY = 1100;

const home = mkdtempSync(join(tmpdir(), 'postern-bench-'));
const database = openDatabase(home);
const master = asMasterKey(randomBytes(32));
const keys = createAccessKeyRegistry({
  database,
  identity: { masterKey: () => master, agentKey: (index) => deriveAgentKey(master, index) },
  now: Date.now,
  randomBytes,
  record: () => undefined,
});
const tokens = Array.from({ length: MANY }, () => keys.create({}).token);

const hash = randomBytes(32);
const signature = secp256k1.sign(hash, master, { prehash: false, format: 'recovered' });
const bare = (): void => void secp256k1.recoverPublicKey(signature, hash, { prehash: false });

let turn = 0;
function verify(token: string | undefined): void {
  if (token === undefined || !keys.verify(token).counts) throw new Error('a key does not count');
}
/** A token of three parts is refused before anything is looked up or computed; this one also names a key. */
const forged = `${tokens[0]!.slice(0, -10)}0000000000`.replace(/0{2}$/, tokens[0]!.slice(-2));

const rows = {
  'seen before': () => verify(tokens[0]),
  'seen for the first time': () => verify(tokens[(turn += 1) % MANY]),
  'forged under a known name': () => void keys.verify(forged),
  'no key at all': () => void keys.verify('svc-v1.any.thing'),
};
console.log('a key that is               µs   keys a second   bare recover ÷ it');
for (const [name, run] of Object.entries(rows)) {
  const { oursUs, ratio } = compare(run, bare);
  const perSecond = Math.round(1e6 / oursUs).toLocaleString('en');
  console.log(
    `${name.padEnd(26)} ${oursUs.toFixed(1).padStart(6)} ${perSecond.padStart(13)} ${ratio.toFixed(2).padStart(14)}`,
  );
}
database.close();
rmSync(home, { recursive: true });

const { withKeyUs, withoutUs } = await measureKeyedRequests();
console.log(`
GET /v1/models               µs   without ÷ it
without a key            ${withoutUs.toFixed(0).padStart(6)}
with a key               ${withKeyUs.toFixed(0).padStart(6)} ${(withoutUs / withKeyUs).toFixed(2).padStart(14)}`);
