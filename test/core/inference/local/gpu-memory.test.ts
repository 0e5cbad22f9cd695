/** The question that a runner is asked where there is a card; whatever it finds here, it answers and goes on. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { freeGpuBytes } from '../../../../core/inference/local/gpu-memory.ts';
import { decodeFromRunner } from '../../../../core/inference/local/runner/protocol.ts';

const runnerEntry = new URL('../../../../dist/core/inference/local/runner/main.js', import.meta.url);

test('a runner says how much memory cards have free', async () => {
  const runner = fork(runnerEntry, { serialization: 'advanced' });
  runner.send([{ type: 'probe' }]);
  const [text] = (await once(runner, 'message')) as [string];
  const [answer] = decodeFromRunner(text) as [{ type: string; freeGpuBytes: number }];
  runner.kill();
  expect(answer.type).toBe('probed');
  expect(answer.freeGpuBytes).toBeGreaterThanOrEqual(0);
});

test('without a card, or with a runner that does not answer, it is none', async () => {
  expect(await freeGpuBytes(new URL('../../../support/no-such-runner.mjs', import.meta.url))).toBe(0);
});
