/** Each thing that can happen to a challenge, in each state that it can be in. */
import { describe, expect, test } from 'vitest';
import { Challenge, type ChallengeEvent, type ChallengeState } from '../../../gateway/sealed/challenge.ts';

type Kind = ChallengeState['kind'];

/** What becomes of it; nothing where it is refused. */
const EXPECTED: Readonly<Record<Kind, Readonly<Record<ChallengeEvent, Kind | undefined>>>> = {
  issued: { asked: 'waiting', missed: undefined, proved: undefined, paired: undefined, ended: undefined },
  waiting: { asked: undefined, missed: 'waiting', proved: 'proved', paired: undefined, ended: 'over' },
  proved: { asked: undefined, missed: undefined, proved: undefined, paired: 'paired', ended: 'over' },
  paired: { asked: undefined, missed: undefined, proved: undefined, paired: undefined, ended: undefined },
  over: { asked: undefined, missed: undefined, proved: undefined, paired: undefined, ended: undefined },
};
const KINDS = Object.keys(EXPECTED) as Kind[];

/** What it carries is another matter. */
const stateOf = (kind: Kind): ChallengeState => ({ kind }) as ChallengeState;

const WAYS: Readonly<Record<Kind, readonly [ChallengeEvent, Kind][]>> = {
  issued: [],
  waiting: [['asked', 'waiting']],
  proved: [
    ['asked', 'waiting'],
    ['proved', 'proved'],
  ],
  paired: [
    ['asked', 'waiting'],
    ['proved', 'proved'],
    ['paired', 'paired'],
  ],
  over: [
    ['asked', 'waiting'],
    ['ended', 'over'],
  ],
};

function reach(kind: Kind): Challenge {
  const challenge = new Challenge(new Uint8Array(16), 0);
  for (const [event, next] of WAYS[kind]) challenge.advance(event, stateOf(next));
  expect(challenge.state.kind).toBe(kind);
  return challenge;
}

describe.each(KINDS)('a challenge that is %s', (kind) => {
  test.each(Object.entries(EXPECTED[kind]) as [ChallengeEvent, Kind | undefined][])('and is %s', (event, next) => {
    expect(reach(kind).accepts(event)).toBe(next !== undefined);
    for (const other of KINDS) {
      const challenge = reach(kind);
      const advance = (): void => challenge.advance(event, stateOf(other));
      if (other === next) advance();
      else expect(advance).toThrow(TypeError);
      expect(challenge.state.kind).toBe(other === next ? next : kind);
    }
  });
});
