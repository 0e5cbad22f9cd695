/**
 * The beginning of a connection, before anybody knows whose it is. The relay says HELLO; then it gets one small frame,
 * within a few seconds: a gateway's REGISTER or a client's JOIN.
 */
import { randomBytes } from 'node:crypto';
import type { WebSocket } from 'ws';
import { ClientSide } from './client-side.ts';
import { GatewaySide } from './gateway-side.ts';
import { isProven } from './registration-proof.ts';
import type { RelayContext } from './relay-context.ts';
import { RelayPeer, type PeerRole } from './relay-peer.ts';
import { formatRoutingId, routingIdOf } from './routing-id.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { decodeFrame, MAX_GREETING_BYTES, NONCE_BYTES, type Frame } from './wire/frame.ts';

/** Makes a peer of a socket that has just been opened. */
export function authenticate(socket: WebSocket, context: RelayContext, address: string): void {
  const { peer } = new Authentication(socket, context, address);
  context.peers.add(peer);
  context.unauthenticated.add(peer, [address]);
}

class Authentication implements PeerRole {
  readonly peer: RelayPeer;
  readonly #context: RelayContext;
  readonly #address: string;
  readonly #nonce = new Uint8Array(randomBytes(NONCE_BYTES));
  readonly #timeout: NodeJS.Timeout;
  #isDeciding = false;

  constructor(socket: WebSocket, context: RelayContext, address: string) {
    this.#context = context;
    this.#address = address;
    this.peer = new RelayPeer(socket, context, this);
    this.#timeout = setTimeout(() => this.#refuse(RELAY_CODE.timeout), context.limits.authenticationMs);
    context.metrics.tally.unauthenticated += 1;
    const { now, origin, limits } = context;
    this.peer.send({
      type: 'hello',
      nonce: this.#nonce,
      timeMs: now(),
      origin,
      connectionWindow: limits.connectionWindowBytes,
      streamWindow: limits.streamWindowBytes,
      maxStreams: limits.streamsPerGateway,
    });
  }

  receive(message: Buffer): void {
    if (this.#isDeciding || message.length > MAX_GREETING_BYTES) throw new RelayError(RELAY_CODE.protocol);
    this.#isDeciding = true;
    const frame = decodeFrame(message);
    if (frame.type === 'register') this.#decide(this.#register(frame));
    else if (frame.type === 'join') this.#decide(this.#join(frame));
    else throw new RelayError(RELAY_CODE.protocol);
  }

  clear(): void {
    // It has not been given any data.
  }

  gone(code: number): void {
    this.#over();
    this.#context.metrics.countRefusal(code);
  }

  #over(): void {
    clearTimeout(this.#timeout);
    this.#context.metrics.tally.unauthenticated -= 1;
    this.#context.unauthenticated.delete(this.peer);
  }

  #refuse(code: number): void {
    this.#context.log({ event: 'refused', code });
    this.peer.refuse(code);
  }

  #decide(deciding: Promise<number | undefined>): void {
    deciding.then(
      (code) => code !== undefined && this.#refuse(code),
      (error: unknown) => {
        this.#context.log({ event: 'failed', code: RELAY_CODE.internal, error });
        this.#refuse(RELAY_CODE.internal);
      },
    );
  }

  /** @returns the code of a refusal */
  async #register(frame: Extract<Frame, { type: 'register' }>): Promise<number | undefined> {
    const { origin, admission, directory, metrics, log, limits } = this.#context;
    const routingId = routingIdOf(frame.publicKey);
    const claim = { routingId: formatRoutingId(routingId), epoch: frame.epoch };
    const isAdmitted = admission().admits(claim.routingId);
    if (!isAdmitted || !isProven({ origin, nonce: this.#nonce }, frame)) return RELAY_CODE.notAllowed;
    const gateway = new GatewaySide(this.peer, this.#context, claim);
    if (!(await directory.claim(claim, gateway))) return RELAY_CODE.replaced;
    if (this.peer.isGone) {
      directory.release(claim);
      return undefined;
    }
    this.#over();
    this.peer.role = gateway;
    metrics.tally.gateways += 1;
    metrics.tally.registrations += 1;
    log({ event: 'gateway', route: claim.routingId.slice(0, 4) });
    const leaseSeconds = Math.ceil(limits.deadAfterMs / 1000);
    this.peer.send({ type: 'registered', routingId, leaseSeconds, nodeName: '' });
    return undefined;
  }

  /** @returns the code of a refusal */
  async #join({ routingId, tag }: Extract<Frame, { type: 'join' }>): Promise<number | undefined> {
    const { metrics, log } = this.#context;
    const name = formatRoutingId(routingId);
    const client = new ClientSide(this.peer, this.#context, name);
    const answer = await client.attach({ tag, address: this.#address });
    if (this.peer.isGone) {
      client.detach();
      return undefined;
    }
    if (typeof answer === 'number') return answer;
    this.#over();
    this.peer.role = client;
    metrics.tally.clients += 1;
    metrics.tally.joins += 1;
    log({ event: 'client', route: name.slice(0, 4) });
    this.peer.send({ type: 'joined', ...answer });
    return undefined;
  }
}
