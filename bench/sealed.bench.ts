/**
 * What the sealed channel costs: the same requests to the same service over loopback, plain and through a paired device.
 * The device computes with node:crypto, as `postern connect` does; for a browser's noble see `channel.bench.ts`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gatewayCrypto } from '../channel/node/crypto.ts';
import { connect, pair, type PosternClient, type SecretStorage } from '../clients/sdk/index.ts';
import { startService, type Service } from './serving/processes.ts';

const CALLS = 1500;
const BULK_BYTES = 24 * 1024 * 1024;
const BULK_ROUNDS = 8;
const FIRST_TOKENS = 40;

type Ask = (path: string, init?: RequestInit) => Promise<Response>;

function memoryStorage(): SecretStorage {
  const entries = new Map<string, string>();
  return {
    read: (name) => Promise.resolve(entries.get(name)),
    write: async (name, text) => void entries.set(name, text),
    erase: async (name) => void entries.delete(name),
  };
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

/** A request of 4 KiB whose answer is small: it names a model that is not there. */
const SMALL = JSON.stringify({ model: 'none', messages: [{ role: 'user', content: 'x'.repeat(4000) }] });
const small = (ask: Ask) => async () => {
  const response = await ask('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: SMALL,
  });
  await response.arrayBuffer();
};
const get = (ask: Ask) => async () => void (await (await ask('/v1/models')).arrayBuffer());

/** Plain and sealed in turns, so that what else the machine does is shared. */
async function small4k(name: string, plain: () => Promise<void>, sealed: () => Promise<void>): Promise<void> {
  const times: { readonly plain: number[]; readonly sealed: number[] } = { plain: [], sealed: [] };
  for (let count = 0; count < 100; count++) await Promise.all([plain(), sealed()]);
  for (let count = 0; count < CALLS; count++) {
    times.plain.push(await timed(plain));
    times.sealed.push(await timed(sealed));
  }
  const [p, s] = [times.plain, times.sealed].map((list) => list.toSorted((a, b) => a - b));
  for (const share of [0.5, 0.99]) {
    const [one, other] = [quantile(p ?? [], share), quantile(s ?? [], share)];
    const goal = share === 0.5 ? '   goal 0.5 ms' : '';
    console.log(
      `  ${name.padEnd(22)} p${share * 100}  plain ${one.toFixed(2).padStart(6)} ms   sealed ${other.toFixed(2).padStart(6)} ms   added ${(other - one).toFixed(2)} ms${goal}`,
    );
  }
}

/** A body that is refused as soon as it was read: not its parsing is measured. */
async function bulk(ask: Ask): Promise<number> {
  const body = Buffer.alloc(BULK_BYTES, 'x');
  const send = async (): Promise<void> => {
    const response = await ask('/v1/chat/completions', { method: 'POST', body });
    await response.arrayBuffer();
    if (response.status !== 400) throw new Error(`answered ${response.status}`);
  };
  await send();
  const ms: number[] = [];
  for (let round = 0; round < BULK_ROUNDS; round++) ms.push(await timed(send));
  return (
    BULK_BYTES /
    1e6 /
    (quantile(
      ms.toSorted((a, b) => a - b),
      0.5,
    ) /
      1000)
  );
}

async function firstToken(ask: Ask): Promise<number> {
  const ms: number[] = [];
  for (let count = 0; count < FIRST_TOKENS; count++) {
    const content = `Question ${count}: what is the capital of France?`;
    const body = JSON.stringify({
      model: 'foundation',
      stream: true,
      max_tokens: 8,
      messages: [{ role: 'user', content }],
    });
    ms.push(
      await timed(async () => {
        const response = await ask('/v1/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
        let text = '';
        for await (const piece of response.body ?? []) {
          text += new TextDecoder().decode(piece);
          if (/"content":"[^"]/.test(text)) return;
        }
        throw new Error('no token came');
      }),
    );
  }
  return quantile(
    ms.toSorted((a, b) => a - b),
    0.5,
  );
}

/** As `postern invite` and `postern pair` do it, and then a question. */
async function pairHere({
  home,
  port,
}: Service): Promise<{ readonly client: PosternClient; readonly seconds: number }> {
  const startedAt = performance.now();
  const { token } = JSON.parse(await readFile(join(home, 'run.json'), 'utf8')) as { token: string };
  const made = await fetch(`http://127.0.0.1:${port}/admin/invites`, {
    method: 'POST',
    headers: { 'x-postern-run-token': token, 'content-type': 'application/json' },
    body: '{}',
  });
  const { code } = (await made.json()) as { code: string };
  const crypto = gatewayCrypto('node');
  const device = await pair(code, { device: { name: 'bench', platform: 'node' }, storage: memoryStorage(), crypto });
  const client = connect(device, { crypto });
  await firstTokenOf(client);
  return { client, seconds: (performance.now() - startedAt) / 1000 };
}

async function firstTokenOf(client: PosternClient): Promise<void> {
  const response = await client.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'foundation', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await response.text();
}

async function main(service: Service): Promise<void> {
  const { client, seconds } = await pairHere(service);
  const plain: Ask = (path, init) => fetch(`http://127.0.0.1:${service.port}${path}`, init);
  const sealed: Ask = (path, init) => client.fetch(path, init);
  console.log('A small call');
  await small4k('GET /v1/models', get(plain), get(sealed));
  await small4k('POST of 4 KiB', small(plain), small(sealed));
  const [p, s] = [await bulk(plain), await bulk(sealed)];
  console.log(
    `A body of 24 MiB: plain ${p.toFixed(0)} MB/s, sealed ${s.toFixed(0)} MB/s: ${((s / p) * 100).toFixed(0)} %   goal 60 %`,
  );
  const [pf, sf] = [await firstToken(plain), await firstToken(sealed)];
  console.log(
    `First token: plain ${pf.toFixed(1)} ms, sealed ${sf.toFixed(1)} ms: ${(sf - pf).toFixed(1)} ms more   goal 42 ms (one tick + 2 ms)`,
  );
  console.log(`From "postern invite" to the first sealed token: ${seconds.toFixed(2)} s`);
  client.close();
}

const service = await startService({
  settings: { 'access.requestsPerMinute': 1_000_000, 'models.discover': false },
});
try {
  await main(service);
} finally {
  await service.stop();
}
