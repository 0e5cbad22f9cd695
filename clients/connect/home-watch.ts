/**
 * Whether home can be reached, for the owner to know: says when that changes, and while it can't, asks again and again.
 * As long as calls are answered it asks nothing.
 */
import { PosternError, type PosternErrorCode, type SetTimer } from '../sdk/index.ts';

/** What is about the way home and the pairing, not about one call. */
const AWAY: ReadonlySet<PosternErrorCode> = new Set([
  'offline',
  'gateway_away',
  'gateway_unavailable',
  'relay_refused',
  'relay_busy',
  'refused',
  'revoked',
  'wrong_gateway',
  'incompatible',
]);

/** After these home may well be away; whoever asks it knows. */
const DOUBTFUL: ReadonlySet<PosternErrorCode> = new Set(['unanswered', 'truncated', 'gateway_stopped', 'restarted']);

/** Home answers, and will go on to answer like this until somebody does something. */
const SHUT: ReadonlySet<PosternErrorCode> = new Set(['refused', 'revoked', 'wrong_gateway', 'incompatible']);

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

export interface HomeWatch {
  /** Asks for the first time. */
  begin(): void;
  /** A call has ended like this. */
  note(error?: unknown): void;
  end(): void;
}

export interface HomeWatchOptions {
  /** Resolves when home has answered. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  readonly say: (words: string) => void;
  readonly setTimer: SetTimer;
}

export function watchHome({ probe, say, setTimer }: HomeWatchOptions): HomeWatch {
  const ending = new AbortController();
  /** What was said last: why home is away, or that it is reached. */
  let state: PosternErrorCode | 'reached' | undefined;
  let isInDoubt = false;
  let isAsking = false;

  function tell(error?: unknown): void {
    if (ending.signal.aborted) return;
    const next = error === undefined ? 'reached' : codeIn(AWAY, error);
    if (next !== undefined) isInDoubt = false;
    if (next === undefined || next === state) return;
    // Whoever was revoked is soon not known any more: that says less.
    if (state === 'revoked' && next === 'refused') return;
    state = next;
    if (next === 'reached') return say('Connected to home.');
    const reason = error instanceof Error ? error.message : '';
    say(
      SHUT.has(next)
        ? `Home does not let this machine in. ${reason}`
        : `Home cannot be reached. ${reason} Asking again until it can.`,
    );
  }
  const isSettled = (): boolean => ending.signal.aborted || (state === 'reached' && !isInDoubt);
  async function keepAsking(firstPauseMs: number): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    let pauseMs = firstPauseMs;
    do {
      await pauseUnless(ending.signal, pauseMs, setTimer);
      // A call may have got through meanwhile.
      if (!isSettled()) await probe(ending.signal).then(() => tell(), tell);
      pauseMs = Math.min(2 * pauseMs || FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    } while (!isSettled());
    isAsking = false;
  }
  return {
    begin: () => void keepAsking(0),
    note(error) {
      tell(error);
      isInDoubt ||= codeIn(DOUBTFUL, error) !== undefined;
      if (!isSettled()) void keepAsking(isInDoubt ? 0 : FIRST_PAUSE_MS);
    },
    end: () => ending.abort(),
  };
}

function codeIn(codes: ReadonlySet<PosternErrorCode>, error: unknown): PosternErrorCode | undefined {
  return error instanceof PosternError && codes.has(error.code) ? error.code : undefined;
}

function pauseUnless(signal: AbortSignal, delayMs: number, setTimer: SetTimer): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = setTimer(delayMs, end);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
