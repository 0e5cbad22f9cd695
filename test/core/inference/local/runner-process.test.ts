/** A runner that misbehaves, as a test double; what the real one does is tested from outside (`e2e/runner`). */
import { expect, test, vi } from 'vitest';
import { SERVICE } from '../../../../core/inference/call-owner.ts';
import { until } from '../../../support/wait.ts';
import { startRunner, type Runner } from '../../../../core/inference/local/runner-process.ts';
import type { LoadRequest } from '../../../../core/inference/local/runner/protocol.ts';

const load: LoadRequest = {
  path: 'x',
  threads: 1,
  sequences: 1,
  contextTokens: 10,
  limit: { tokens: 10, by: 'setting' },
  cacheType: 'f16',
  gpu: 'off',
  settings: {},
  bundle: {},
};
const call = { owner: SERVICE, input: { rawText: '' } };

async function start(entry: string, abortTimeoutMs = 1): Promise<{ runner: Runner; deaths: string[] }> {
  const deaths: string[] = [];
  const runner = await startRunner({
    entry: new URL(`../../../support/${entry}`, import.meta.url),
    load,
    onExit: (how) => deaths.push(how),
    abortTimeoutMs,
  });
  return { runner, deaths };
}

test.each(['signal', 'cancel'])(
  'a runner that does not stop when told to (by %s) is killed, and its place is free',
  async (how) => {
    const { runner, deaths } = await start('stuck-runner.mjs');
    const leave = new AbortController();
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const stream = await runner.stream(call, { signal: leave.signal, onSettled: settle });
    if (how === 'cancel') await stream.cancel();
    else leave.abort(new Error('enough'));
    await settled;
    expect(runner.isAlive()).toBe(false);
    // It was we who killed it.
    expect(deaths).toEqual([]);
    await expect(runner.stream(call, { onSettled: () => undefined })).rejects.toMatchObject({ code: 'engine_failed' });
  },
);

test('one that does not stop counting when told to is killed as well', async () => {
  const { runner, deaths } = await start('stuck-runner.mjs');
  const leave = new AbortController();
  const counting = runner.countPromptTokens({ ...call, maxOutputTokens: 0 }, leave.signal);
  leave.abort(new Error('enough'));
  await expect(counting).rejects.toMatchObject({ code: 'engine_failed' });
  expect(runner.isAlive()).toBe(false);
  expect(deaths).toEqual([]);
});

test('whoever leaves an answer that is complete, and not read to its end, stops nobody’s runner', async () => {
  const { runner } = await start('obedient-runner.mjs');
  const settled = Promise.withResolvers<void>();
  const stream = await runner.stream({ ...call, maxOutputTokens: 0 }, { onSettled: () => settled.resolve() });
  await settled.promise;
  await stream.cancel();
  // A millisecond later it would be killed.
  for (let turn = 0; turn < 20; turn += 1) {
    await expect(runner.countPromptTokens(call, new AbortController().signal)).resolves.toBe(1);
  }
  await runner.stop();
});

test('a start that nobody waits for any more is ended with its reason', async () => {
  const leave = new AbortController();
  const entry = new URL('../../../support/mute-runner.mjs', import.meta.url);
  const deaths: string[] = [];
  const starting = startRunner({ entry, load, onExit: (how) => deaths.push(how), signal: leave.signal });
  leave.abort(new Error('closing'));
  await expect(starting).rejects.toThrow('closing');
  await expect(startRunner({ entry, load, onExit: () => undefined, signal: leave.signal })).rejects.toThrow('closing');
  expect(deaths).toEqual([]);
});

test('a runner that cannot be started is a failure in words, not a wait', async () => {
  await expect(start('no-such-runner.mjs')).rejects.toMatchObject({ code: 'engine_failed' });
});

test('of what the engine prints only its last words reach the log', async () => {
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    await expect(start('talkative-runner.mjs')).rejects.toMatchObject({ code: 'engine_failed' });
    await until(() => written.mock.calls.length >= 2);
    const lines = written.mock.calls.map(([line]) => String(line));
    expect(lines).toEqual([
      'postern: the model engine failed.\n',
      expect.stringMatching(/^\/build\/ggml\.c:12: GGML_ASSERT\(n > 0\) failed x{1,500}\n$/),
    ]);
  } finally {
    written.mockRestore();
  }
});
