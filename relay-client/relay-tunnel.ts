/**
 * The gateway's way to a relay: dialled from here, kept open, and never asked about what it carries. Streams that
 * devices open come out of it; nothing else of this machine is within its reach.
 */
import { RELAY_CODE, RelayError } from '../relay/wire/codes.ts';
import { SUBPROTOCOL } from '../relay/wire/frame.ts';
import type { Clock } from '../relay/wire/heartbeat.ts';
import { OP } from '../relay/wire/op.ts';
import type { PeerStream } from '../relay/wire/stream-set.ts';
import type { AllowedTag } from './allow-list.ts';
import { startDialLoop, type DialOutcome, type DialPhase } from './dial-loop.ts';
import { GatewayConnection, type ConnectionEnd, type Registered, type RelayKey } from './gateway-connection.ts';
import { answerProbe, makeProbeTag, probe } from './probe.ts';
import type { ProxyEnvironment } from './proxy.ts';
import { tunnelStream, type TunnelStream } from './tunnel-stream.ts';
import { openWebSocket } from './web-socket.ts';

export interface RelayTunnelOptions extends Clock {
  /** Where to dial: `wss://host[:port]`, or with a path. */
  readonly url: string;
  /** What the relay is known as, and the only thing that is ever signed for it. @see isRelayOrigin */
  readonly origin: string;
  readonly key: RelayKey;
  /** Higher each time, and kept before it is given: the larger of the last one + 1 and the time in milliseconds. */
  readonly nextEpoch: () => number | Promise<number>;
  /** A voucher of the relay's operator, up to 128 bytes. */
  readonly admission?: Uint8Array;
  /** Who may come in, as it is now: asked again every day, and after `changed()`. */
  readonly tags: () => readonly AllowedTag[];
  readonly onStream: (stream: TunnelStream) => void | Promise<void>;
  /** Told what `onStream` throws or rejects with. */
  readonly onError: (error: unknown) => void;
  /** `HTTPS_PROXY` and `NO_PROXY` are read. */
  readonly environment: ProxyEnvironment;
  /** Words for the owner. */
  readonly say: (text: string) => void;
}

export interface TunnelState {
  readonly phase: DialPhase;
  readonly sinceMs: number;
  /** While waiting: when it dials again. */
  readonly untilMs?: number;
  /** Why it was not connected last, in plain words. */
  readonly lastError?: string;
  /** Once it was registered: under which id, 15 bytes. */
  readonly routingId?: Uint8Array;
  /** Somebody else registers with the same key. */
  readonly isContested: boolean;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface RelayTunnel {
  state(): TunnelState;
  /** These tags count no more, from now on; their streams end. */
  deny(tags: readonly Uint8Array[]): void;
  /** What `tags` gives has changed. */
  changed(): void;
  /** Dials now if it is waiting: the network is there again. */
  retryNow(): void;
  /** What was written before still goes out. */
  close(): Promise<void>;
}

const PROBE_TRIES = 3;
/** How often it is looked whether it is another day; tags are told again then. */
const LOOK_AT_DAY_MS = 10 * 60_000;
const DAY_MS = 86_400_000;
/** More takeovers than that in a minute are no accident. */
const MAX_TAKEOVERS = 3;
const TAKEOVER_WINDOW_MS = 60_000;
/** What streams of a connection that the relay wants to end have left. */
const LINGER_MS = 30_000;

export function createRelayTunnel(options: RelayTunnelOptions): RelayTunnel {
  return new Tunnel(options);
}

class Tunnel implements RelayTunnel {
  readonly #options: RelayTunnelOptions;
  readonly #loop: ReturnType<typeof startDialLoop>;
  #state: TunnelState;
  #connection: GatewayConnection | undefined;
  #registered: Registered | undefined;
  #toldDay = 0;
  #probeTag: AllowedTag | undefined;
  #takeovers: number[] = [];
  #isClosed = false;
  #cancelDay: () => void;

  constructor(options: RelayTunnelOptions) {
    this.#options = options;
    this.#state = { phase: 'connecting', sinceMs: this.#now(), isContested: false, bytesIn: 0, bytesOut: 0 };
    this.#cancelDay = options.setTimer(LOOK_AT_DAY_MS, () => this.#lookAtDay());
    this.#loop = startDialLoop({
      attempt: (signal, connected) => this.#attempt(signal, connected),
      onPhase: (phase, about) => this.#entered(phase, about),
      setTimer: options.setTimer,
      random: options.random,
    });
  }

  state(): TunnelState {
    return this.#state;
  }

  deny(tags: readonly Uint8Array[]): void {
    if (tags.length > 0) this.#registered?.allowList.deny(tags);
  }

  changed(): void {
    try {
      this.#tellTags();
    } catch {
      // Nobody may come in of whom it isn't known: the connection is made again, and asks again.
      this.#connection?.close(new RelayError(RELAY_CODE.internal, 'it could not be found out who may come in'));
    }
  }

  retryNow(): void {
    this.#loop.retryNow();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelDay();
    const left = this.#connection?.leave();
    this.#loop.close();
    await left;
  }

  async #attempt(signal: AbortSignal, connected: () => void): Promise<DialOutcome> {
    const { url, origin, key, nextEpoch, admission, environment, random } = this.#options;
    const clock: Clock = { setTimer: this.#options.setTimer, now: () => this.#now(), random };
    const epoch = await nextEpoch();
    if (signal.aborted) return { error: signal.reason };
    const connection = new GatewayConnection({
      socket: openWebSocket(url, SUBPROTOCOL, environment),
      clock,
      origin,
      key,
      epoch,
      admission: admission ?? new Uint8Array(0),
      onStream: (stream) => this.#streamCame(stream),
      onBytes: (bytes) => {
        const { bytesIn, bytesOut } = this.#state;
        this.#state = { ...this.#state, bytesIn: bytesIn + bytes.in, bytesOut: bytesOut + bytes.out };
      },
    });
    signal.addEventListener('abort', () => connection.close(new RelayError(RELAY_CODE.timeout)), { once: true });
    this.#connection = connection;
    try {
      await this.#bringUp(connection, clock);
      connected();
    } catch (error) {
      connection.close(error instanceof RelayError ? error : new RelayError(RELAY_CODE.internal));
    }
    return this.#outcome(connection, await connection.ended);
  }

  async #bringUp(connection: GatewayConnection, clock: Clock): Promise<void> {
    const registered = await connection.registered;
    this.#registered = registered;
    this.#state = { ...this.#state, routingId: registered.routingId };
    this.#probeTag = makeProbeTag(clock.now);
    this.#tellTags();
    const { routingId } = registered;
    const { url, environment } = this.#options;
    const webSocket = (to: string, protocol: string): ReturnType<typeof openWebSocket> =>
      openWebSocket(to, protocol, environment);
    const { tag } = this.#probeTag;
    for (let tries = 1; ; tries += 1) {
      try {
        await Promise.race([probe({ url, routingId, tag, clock, webSocket }), failed(connection)]);
        return;
      } catch (error) {
        if (tries < PROBE_TRIES && connection.isOpen) continue;
        const reason = error instanceof RelayError ? error.message : 'it failed';
        throw new RelayError(RELAY_CODE.offline, `the relay took us in, but nothing came through it: ${reason}`);
      }
    }
  }

  #outcome(connection: GatewayConnection, { error, wait }: ConnectionEnd): DialOutcome {
    this.#registered = undefined;
    const isReplaced = error.code === RELAY_CODE.replaced;
    if (isReplaced) this.#countTakeover();
    else if (wait !== undefined) this.#letFinish(connection);
    return {
      error,
      ...(wait === undefined || isReplaced ? {} : { wait }),
      isSlow: isReplaced && this.#state.isContested,
    };
  }

  /** Streams that run go on over the old connection, which the relay closes when they are over. */
  #letFinish(connection: GatewayConnection): void {
    const { setTimer } = this.#options;
    setTimer(LINGER_MS, () => connection.close(new RelayError(RELAY_CODE.draining)));
  }

  #countTakeover(): void {
    const now = this.#now();
    this.#takeovers = [...this.#takeovers.filter((at) => Math.abs(now - at) < TAKEOVER_WINDOW_MS), now];
    if (this.#takeovers.length <= MAX_TAKEOVERS || this.#state.isContested) return;
    this.#state = { ...this.#state, isContested: true };
    this.#say(
      'another gateway keeps registering with the same key. Either two run with one identity, or the key was stolen: ' +
        'stop the other, or take up a new identity.',
    );
  }

  #streamCame(stream: PeerStream): void {
    if (stream.op === OP.probe) {
      answerProbe(stream).catch(() => stream.reset(RELAY_CODE.internal));
      return;
    }
    const failedHere = (error: unknown): void => {
      stream.reset(RELAY_CODE.internal);
      this.#options.onError(error);
    };
    try {
      const handled = this.#options.onStream(tunnelStream(stream, this.#options.setTimer));
      if (handled !== undefined) handled.catch(failedHere);
    } catch (error) {
      failedHere(error);
    }
  }

  #tellTags(): void {
    if (this.#registered === undefined) return;
    const probes = this.#probeTag === undefined ? [] : [this.#probeTag];
    this.#registered.allowList.tell([...this.#options.tags(), ...probes]);
    this.#toldDay = this.#day();
  }

  #lookAtDay(): void {
    if (this.#isClosed) return;
    this.#cancelDay = this.#options.setTimer(LOOK_AT_DAY_MS, () => this.#lookAtDay());
    if (this.#day() !== this.#toldDay) this.changed();
  }

  #day(): number {
    return Math.floor(this.#now() / DAY_MS);
  }

  #entered(phase: DialPhase, { waitMs, error }: { readonly waitMs?: number; readonly error?: unknown }): void {
    const { untilMs: _over, ...before } = this.#state;
    const now = this.#now();
    const lastError = error === undefined ? before.lastError : error instanceof Error ? error.message : 'it failed';
    this.#state = {
      ...before,
      phase,
      sinceMs: now,
      ...(lastError === undefined ? {} : { lastError }),
      ...(waitMs === undefined ? {} : { untilMs: now + waitMs }),
    };
    if (phase === 'connected') this.#say('connected');
    else if (phase === 'waiting' && (before.phase === 'connected' || lastError !== before.lastError))
      this.#say(`not connected: ${lastError ?? ''}. Reconnecting.`);
  }

  #now(): number {
    try {
      return this.#options.now();
    } catch {
      return this.#state?.sinceMs ?? 0;
    }
  }

  #say(text: string): void {
    try {
      this.#options.say(`relay ${this.#options.origin}: ${text}`);
    } catch {
      // Whoever listens failed; the tunnel goes on.
    }
  }
}

async function failed(connection: GatewayConnection): Promise<never> {
  throw (await connection.ended).error;
}
