/** What a relay may do to the frames that it passes. Each of these is a misdeed for `HostileRelay.misdeed`, or makes one. */
import { encodeEnvelope } from '../../channel/envelope.ts';
import type { Frame } from '../../relay/wire/frame.ts';
import { OP } from '../../relay/wire/op.ts';
import { HONEST, type Link, type Misdeed, type Passing, type Role } from './hostile-relay.ts';

type Data = Extract<Frame, { type: 'data' }>;

/** Which frames; what is not named is not asked for. */
export interface Which {
  readonly role?: Role;
  readonly from?: Passing['from'];
  readonly type?: Frame['type'];
  /** What the stream was opened for. */
  readonly op?: number;
}

/** The frames of a device that ask for something, and those that answer. */
export const ASKING = { role: 'client', from: 'peer', type: 'data' } as const;
export const ANSWERING = { role: 'client', from: 'relay', type: 'data' } as const;

function isMeant({ role, from, type, op }: Which, { link, from: actual, frame }: Passing): boolean {
  if (role !== undefined && role !== link.role) return false;
  if (from !== undefined && from !== actual) return false;
  if (type !== undefined && type !== frame.type) return false;
  return op === undefined || ('stream' in frame && link.opOf(frame.stream) === op);
}

/** Does it to those frames, and is honest otherwise. */
export function to(which: Which, misdeed: Misdeed): Misdeed {
  return (passing) => (isMeant(which, passing) ? misdeed(passing) : HONEST(passing));
}

export const asking = (misdeed: Misdeed): Misdeed => to({ ...ASKING, op: OP.call }, misdeed);
export const answering = (misdeed: Misdeed): Misdeed => to({ ...ANSWERING, op: OP.call }, misdeed);
export const greeting = (misdeed: Misdeed): Misdeed => to({ ...ASKING, op: OP.session }, misdeed);
export const greeted = (misdeed: Misdeed): Misdeed => to({ ...ANSWERING, op: OP.session }, misdeed);

/** Says something besides. */
export const meanwhile = (which: Which, words: (link: Link) => void): Misdeed =>
  to(which, ({ link, frame }) => (words(link), [frame]));

/** Does it so many times, and is honest from then on. */
export function times(count: number, which: Which, misdeed: Misdeed): Misdeed {
  let done = 0;
  return to(which, (passing) => (done++ < count ? misdeed(passing) : HONEST(passing)));
}

/** Whoever sent it is told that it was taken: what is lost here is bytes, not credit. */
export const drop: Misdeed = ({ link, from, frame }) => {
  if (frame.type !== 'data' || frame.bytes.length === 0) return [];
  const other = from === 'peer' ? 'relay' : 'peer';
  for (const stream of [frame.stream, 0]) link.forward(other, { type: 'window', stream, credit: frame.bytes.length });
  return [];
};

export const twice: Misdeed = ({ frame }) => {
  if (frame.type !== 'data') return [frame, frame];
  return frame.bytes.length === 0 ? [frame] : [{ ...frame, isEnd: false }, frame];
};

/** Flips a bit of the data that is `at` bytes into the stream. */
export function flip(at: number, bit = 0): Misdeed {
  return eachByte((bytes, start) => bytes.map((byte, index) => (start + index === at ? byte ^ (1 << bit) : byte)));
}

/** The stream ends after so many bytes, as if that were all. */
export function truncate(afterBytes: number): Misdeed {
  const ended = perStream(() => ({ sent: 0, isOver: false }));
  return (passing) => {
    const { frame, link } = passing;
    if (frame.type !== 'data') return HONEST(passing);
    const state = ended(link, frame.stream);
    if (state.isOver) return drop(passing);
    const bytes = frame.bytes.subarray(0, afterBytes - state.sent);
    state.sent += frame.bytes.length;
    state.isOver = frame.isEnd || state.sent >= afterBytes;
    return [{ ...frame, bytes, isEnd: state.isOver }];
  };
}

/** All of a stream is swallowed, and this is said in its place. */
export function insteadOf(words: (passing: Passing) => Uint8Array): Misdeed {
  const said = perStream(() => ({ isSaid: false }));
  return (passing) => {
    const { frame, link } = passing;
    if (frame.type !== 'data') return HONEST(passing);
    const state = said(link, frame.stream);
    drop(passing);
    if (state.isSaid) return [];
    state.isSaid = true;
    return [{ ...frame, bytes: words(passing), isEnd: true }];
  };
}

export const say = (bytes: Uint8Array): Misdeed => insteadOf(() => bytes);
export const hint = (code: number): Misdeed => say(encodeEnvelope({ kind: 'hint', code }));

/** Frames change places, two and two: those of one stream, or those of two. What waits never waits beyond an END. */
export function swapped(isSameStream: boolean): Misdeed {
  let waiting: { readonly link: Link; readonly frame: Data } | undefined;
  return (passing) => {
    const { frame, link } = passing;
    if (frame.type !== 'data') return HONEST(passing);
    const earlier = waiting;
    if (earlier === undefined) {
      if (!frame.isEnd) waiting = { link, frame };
      return frame.isEnd ? [frame] : [];
    }
    const isSame = earlier.link === link && earlier.frame.stream === frame.stream;
    // Only the next frame of the same link can take its place.
    if (earlier.link !== link || (isSameStream && !isSame)) return [frame];
    waiting = undefined;
    return isSame === isSameStream && !(isSame && frame.isEnd) ? [frame, earlier.frame] : [earlier.frame, frame];
  };
}

export interface Hold {
  readonly misdeed: Misdeed;
  /** How many frames wait. */
  readonly held: () => number;
  /** Lets them go, the oldest first; later ones are not held any more. */
  release(): void;
}

/** Keeps frames until they are released. */
export function hold(which: Which): Hold {
  const waiting: Passing[] = [];
  let isReleased = false;
  return {
    misdeed: to(which, (passing) => {
      if (isReleased) return HONEST(passing);
      waiting.push(passing);
      return [];
    }),
    held: () => waiting.length,
    release() {
      isReleased = true;
      for (const { link, from, frame } of waiting.splice(0)) link.forward(from, frame);
    },
  };
}

/** Sends whoever wants to join one gateway to another that let somebody in. */
export function crossWire(other: Link, routingId: Uint8Array): Misdeed {
  return to({ from: 'peer', type: 'join', role: 'client' }, ({ frame }) => {
    const [tag] = other.tags;
    if (frame.type !== 'join' || tag === undefined) return [frame];
    return [{ ...frame, routingId, tag }];
  });
}

/** Says of a frame what is not so. */
export function lie<Type extends Frame['type']>(
  type: Type,
  change: Partial<Extract<Frame, { type: Type }>>,
  which: Omit<Which, 'type'> = {},
): Misdeed {
  return to({ ...which, type }, ({ frame }) => [{ ...frame, ...change }]);
}

function eachByte(change: (bytes: Uint8Array, start: number) => Uint8Array): Misdeed {
  const counted = perStream(() => ({ bytes: 0 }));
  return (passing) => {
    const { frame, link } = passing;
    if (frame.type !== 'data') return HONEST(passing);
    const state = counted(link, frame.stream);
    const start = state.bytes;
    state.bytes += frame.bytes.length;
    return [{ ...frame, bytes: change(frame.bytes, start) }];
  };
}

/** Something that is remembered of each stream. */
function perStream<State>(begin: () => State): (link: Link, stream: number) => State {
  const links = new Map<Link, Map<number, State>>();
  return (link, stream) => {
    const streams = links.get(link) ?? new Map<number, State>();
    links.set(link, streams);
    const state = streams.get(stream) ?? begin();
    streams.set(stream, state);
    return state;
  };
}
