/** The channel server before anybody comes: nothing is loaded, and nothing is kept from closing. */
import { expect, test } from 'vitest';
import { lazyChannelServer } from '../../../gateway/sealed/lazy-channel-server.ts';
import type { ChannelServer } from '../../../gateway/sealed/channel-server.ts';

const source = { transport: 'lan', clientKey: 'x', gone: new AbortController().signal, cut: () => undefined } as const;

function start() {
  const said: string[] = [];
  let loads = 0;
  const channelServer: ChannelServer = {
    async *handle(op) {
      said.push(op);
      yield new Uint8Array([1]);
    },
    challenge: () => Promise.reject(new Error('none')),
    async revoke(kids) {
      said.push(`revoke ${kids.join()}`);
      return 0;
    },
    close: async () => void said.push('close'),
    counts: () => ({ sessions: 1, calls: 2, heldBytes: 3 }),
  };
  const late = lazyChannelServer(async () => {
    loads += 1;
    return channelServer;
  });
  const comes = async () => {
    for await (const _ of late.handle('session', source, (async function* () {})()));
  };
  return { late, comes, said, loads: () => loads };
}

test('is loaded once, by whoever comes first', async () => {
  const { late, comes, said, loads } = start();
  await late.revoke(['a']);
  expect([loads(), late.counts()]).toEqual([0, { sessions: 0, calls: 0, heldBytes: 0 }]);
  await Promise.all([comes(), comes()]);
  await late.revoke(['b']);
  expect([loads(), late.counts(), said]).toEqual([
    1,
    { sessions: 1, calls: 2, heldBytes: 3 },
    ['session', 'session', 'revoke b'],
  ]);
  await late.close();
  expect(said.at(-1)).toBe('close');
});

test('that was closed before anybody came is closed to whoever comes', async () => {
  const { late, comes, said, loads } = start();
  await late.close();
  expect(loads()).toBe(0);
  await comes();
  expect(said).toEqual(['close', 'session']);
});
