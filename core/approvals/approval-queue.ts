/**
 * What waits for its owner's word: one queue for all that asks. Whoever asks gets an answer in the end, and it is yes
 * only if the owner said so; time that runs out, a caller that leaves, a service that stops all mean no.
 *
 * It lives in memory: an approval that nobody waits for any more is worth nothing, so all of them die with the process.
 */
import { printable } from '../printable.ts';
import type { SetTimer } from '../timer.ts';

/** How many of a kind may wait at once. */
interface ApprovalKindBounds {
  readonly maxPending: number;
  /** Those with a code are counted by themselves. None may wait where this is absent. */
  readonly maxPendingWithCode?: number;
}

export interface Approval {
  readonly id: string;
  readonly kind: string;
  /** For the owner to read: who asks for what. */
  readonly summary: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** To be typed on the device that asks, which is what approves it; it can only be denied here. */
  readonly code?: string;
}

export type ApprovalOutcome = 'approved' | 'denied' | 'expired' | 'cancelled';

export type Decision = 'approved' | 'denied';

export interface ApprovalParams<Kind extends string = string> {
  readonly kind: Kind;
  readonly summary: string;
  readonly lifetimeMs: number;
  readonly code?: string | undefined;
  /** Fires when whoever asks needs no answer any more: a caller that left, a key that was revoked. */
  readonly signal?: AbortSignal | undefined;
}

export interface PendingApproval {
  readonly approval: Approval;
  /** Never rejects. */
  readonly outcome: Promise<ApprovalOutcome>;
  /** Says that the code was typed on the device. @returns what has become of it, which may be something else by now */
  confirmCode(): ApprovalOutcome;
}

export type DecisionResult =
  | { readonly result: 'done' }
  /** No such id, or one of so long ago that it is forgotten. */
  | { readonly result: 'unknown' }
  | { readonly result: 'settled'; readonly outcome: ApprovalOutcome }
  /** The code on the device approves it, not this. */
  | { readonly result: 'needs_code' };

export type ApprovalEvent =
  | { readonly type: 'added'; readonly approval: Approval }
  | { readonly type: 'settled'; readonly approval: Approval; readonly outcome: ApprovalOutcome };

export interface ApprovalQueue<Kind extends string> {
  /** @returns undefined where as many of this kind wait already as may; those with a code are counted by themselves */
  readonly request: (params: ApprovalParams<Kind>) => PendingApproval | undefined;
  /** Oldest first. */
  list(): readonly Approval[];
  /** @throws what `record` throws; a yes that could not be recorded was not given */
  decide(id: string, decision: Decision): DecisionResult;
  /** @returns what takes the listener away again */
  subscribe(listener: (event: ApprovalEvent) => void): () => void;
  /** Cancels all that waits, for the end of the service. */
  close(): void;
}

/** A summary is read by a person; what asks may be a model. */
const MAX_SUMMARY_CHARACTERS = 1000;
const MAX_LIFETIME_MS = 24 * 60 * 60 * 1000;
/** Outcomes that are still known, so that who comes late is told what became of it. */
const MAX_SETTLED = 256;

interface QueueOptions<Kind extends string> {
  /** As the rooms that ask for approvals declare them. */
  readonly kinds: Readonly<Record<Kind, ApprovalKindBounds>>;
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** A random id that no other has. */
  readonly newId: () => string;
  /** Called with every outcome. Where it throws, a yes is not given. */
  readonly record: (approval: Approval, outcome: ApprovalOutcome) => void;
  /** When a no could not be recorded, which is a no all the same. */
  readonly onError: (error: unknown) => void;
}

interface Waiting {
  readonly approval: Approval;
  /** Lets go of timer and signal, and tells whoever asked. */
  end(outcome: ApprovalOutcome): void;
}

export function createApprovalQueue<Kind extends string>(options: QueueOptions<Kind>): ApprovalQueue<Kind> {
  const { kinds, now, setTimer, newId, record, onError } = options;
  const waiting = new Map<string, Waiting>();
  const settled = new Map<string, ApprovalOutcome>();
  const listeners = new Set<(event: ApprovalEvent) => void>();
  let isClosed = false;
  const tell = (event: ApprovalEvent): void => {
    for (const listener of listeners) listener(event);
  };

  /** @returns what became of it, now or before */
  function settle(id: string, wanted: ApprovalOutcome): ApprovalOutcome | undefined {
    const one = waiting.get(id);
    if (one === undefined) return settled.get(id);
    const { approval } = one;
    // A machine that slept wakes up with its timers late.
    const outcome = now() >= approval.expiresAt ? 'expired' : wanted;
    if (outcome === 'approved') record(approval, outcome);
    waiting.delete(id);
    remember(settled, id, outcome);
    if (outcome !== 'approved') attempt(() => record(approval, outcome), onError);
    one.end(outcome);
    tell({ type: 'settled', approval, outcome });
    return outcome;
  }

  return {
    request(params) {
      const alike = [...waiting.values()].filter(({ approval }) => isAlike(approval, params));
      if (alike.length >= boundOf(params, kinds[params.kind])) return undefined;
      const approval = approvalOf(params, { id: newId(), createdAt: now() });
      const { id } = approval;
      const answer = Promise.withResolvers<ApprovalOutcome>();
      const disarm = arm(params, setTimer, (outcome) => settle(id, outcome));
      const end = (outcome: ApprovalOutcome): void => {
        disarm();
        answer.resolve(outcome);
      };
      waiting.set(id, { approval, end });
      tell({ type: 'added', approval });
      if (isClosed || params.signal?.aborted === true) settle(id, 'cancelled');
      return { approval, outcome: answer.promise, confirmCode: () => settle(id, 'approved') ?? 'cancelled' };
    },
    list: () => [...waiting.values()].map(({ approval }) => approval),
    decide(id, decision) {
      const before = settled.get(id);
      if (before !== undefined) return { result: 'settled', outcome: before };
      if (decision === 'approved' && waiting.get(id)?.approval.code !== undefined) return { result: 'needs_code' };
      const outcome = settle(id, decision);
      if (outcome === undefined) return { result: 'unknown' };
      return outcome === decision ? { result: 'done' } : { result: 'settled', outcome };
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      isClosed = true;
      for (const id of waiting.keys()) settle(id, 'cancelled');
    },
  };
}

function boundOf({ code }: ApprovalParams, { maxPending, maxPendingWithCode = 0 }: ApprovalKindBounds): number {
  return code === undefined ? maxPending : maxPendingWithCode;
}

/** @returns what takes the timer and the signal back */
function arm(
  { lifetimeMs, signal }: ApprovalParams,
  setTimer: SetTimer,
  settle: (outcome: ApprovalOutcome) => void,
): () => void {
  const cancelTimer = setTimer(lifetimeMs, () => settle('expired'));
  const onAbort = (): void => settle('cancelled');
  signal?.addEventListener('abort', onAbort, { once: true });
  return () => {
    cancelTimer();
    signal?.removeEventListener('abort', onAbort);
  };
}

/** Strangers can ask for codes, and must not be in the way of who holds an invite. */
function isAlike(approval: Approval, params: ApprovalParams): boolean {
  return approval.kind === params.kind && (approval.code === undefined) === (params.code === undefined);
}

function approvalOf(
  { kind, summary, lifetimeMs, code }: ApprovalParams,
  { id, createdAt }: Pick<Approval, 'id' | 'createdAt'>,
): Approval {
  if (!(lifetimeMs > 0 && lifetimeMs <= MAX_LIFETIME_MS)) throw new RangeError(`no approval waits ${lifetimeMs} ms`);
  const shown = { id, kind, summary: shortened(summary), createdAt, expiresAt: createdAt + lifetimeMs };
  return code === undefined ? shown : { ...shown, code };
}

function shortened(text: string): string {
  const shown = Array.from(printable(text));
  return shown.length <= MAX_SUMMARY_CHARACTERS
    ? shown.join('')
    : `${shown.slice(0, MAX_SUMMARY_CHARACTERS - 1).join('')}…`;
}

function remember(settled: Map<string, ApprovalOutcome>, id: string, outcome: ApprovalOutcome): void {
  settled.set(id, outcome);
  const [oldest] = settled.keys();
  if (settled.size > MAX_SETTLED && oldest !== undefined) settled.delete(oldest);
}

function attempt(run: () => void, onError: (error: unknown) => void): void {
  try {
    run();
  } catch (error) {
    onError(error);
  }
}
