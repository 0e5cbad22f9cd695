import { describe, expect, test } from 'vitest';
import { watchHome } from '../../../clients/connect/home-watch.ts';
import { PosternError, type PosternErrorCode } from '../../../clients/sdk/index.ts';
import { until } from '../../support/wait.ts';

function watched() {
  const said: string[] = [];
  const pauses: number[] = [];
  let timer: (() => void) | undefined;
  let away: PosternErrorCode | undefined;
  let probes = 0;
  const watch = watchHome({
    probe: async () => {
      probes += 1;
      if (away !== undefined) throw new PosternError(away);
    },
    say: (words) => said.push(words),
    setTimer: (delayMs, run) => {
      pauses.push(delayMs);
      timer = run;
      return () => (timer = undefined);
    },
  });
  return {
    watch,
    said,
    pauses,
    probes: () => probes,
    isWaiting: () => timer !== undefined,
    setAway: (code?: PosternErrorCode) => (away = code),
    /** Lets the pause pass, when there is one. */
    pass: async () => {
      const run = await until(() => timer);
      timer = undefined;
      run();
    },
  };
}

describe('home', () => {
  test('that lets this machine in no more is not called away, and the clearer reason stands', async () => {
    const { watch, said } = watched();
    watch.begin();
    watch.note(new PosternError('revoked'));
    watch.note(new PosternError('refused'));
    expect(said).toEqual([expect.stringMatching(/^Home does not let this machine in\. This device was revoked/)]);
    watch.note();
    watch.note(new PosternError('refused'));
    expect(said.slice(1)).toEqual([
      'Connected to home.',
      expect.stringMatching(/^Home does not let this machine in\./),
    ]);
    watch.end();
  });

  test('that is there is said once, and asked no more', async () => {
    const { watch, said, pass, probes, isWaiting } = watched();
    watch.begin();
    await pass();
    await until(() => said.length === 1);
    watch.note();
    expect({ said, probes: probes(), waits: isWaiting() }).toEqual({
      said: ['Connected to home.'],
      probes: 1,
      waits: false,
    });
  });

  test('that is away is said once for each reason, and asked again at growing intervals until it is there', async () => {
    const { watch, said, pauses, pass, setAway, probes } = watched();
    setAway('offline');
    watch.begin();
    for (let round = 1; round <= 8; round++) {
      await pass();
      await until(() => probes() === round);
    }
    expect(said).toEqual([expect.stringContaining(new PosternError('offline').message)]);
    await until(() => pauses.length === 9);
    expect(pauses).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    setAway('refused');
    await pass();
    await until(() => said.length === 2);
    setAway();
    await pass();
    await until(() => said.length === 3);
    expect(said.slice(1)).toEqual([expect.stringContaining(new PosternError('refused').message), 'Connected to home.']);
  });

  test('is asked after when a call did not get through; its own failures are no reason', async () => {
    const { watch, said, pass, probes, isWaiting } = watched();
    watch.begin();
    await pass();
    await until(() => said.length === 1);
    watch.note(new PosternError('session_expired'));
    watch.note(new TypeError('x'));
    expect(isWaiting()).toBe(false);
    watch.note(new PosternError('offline'));
    watch.note(new PosternError('offline'));
    expect(said).toHaveLength(2);
    await pass();
    await until(() => said.length === 3);
    expect(probes()).toBe(2);
  });

  test('is asked at once when a call leaves it in doubt, and nothing is said if it is there', async () => {
    const { watch, said, pauses, pass, probes, isWaiting, setAway } = watched();
    watch.begin();
    await pass();
    await until(() => said.length === 1);
    watch.note(new PosternError('unanswered'));
    await pass();
    await until(() => probes() === 2 && !isWaiting());
    expect({ said, pauses }).toEqual({ said: ['Connected to home.'], pauses: [0, 0] });
    setAway('offline');
    watch.note(new PosternError('unanswered'));
    await pass();
    await until(() => said.length === 2);
  });

  test('is not asked after the end', async () => {
    const { watch, said, setAway, pass, isWaiting } = watched();
    setAway('offline');
    watch.begin();
    await pass();
    await until(() => said.length === 1 && isWaiting());
    watch.end();
    watch.note(new PosternError('offline'));
    expect({ waits: isWaiting(), said: said.length }).toEqual({ waits: false, said: 1 });
  });
});
