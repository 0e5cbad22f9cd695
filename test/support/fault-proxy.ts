/**
 * Somebody on the way between a client and its gateway, who has the bytes in his hands and no key. Each connection has
 * one fault of its own, drawn by the schedule, or none; what one connection said can be played back on another.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** Towards the gateway, or from it. */
type Direction = 'up' | 'down';

/** Byte counts are those of the connection, HTTP and all. */
export type Fault =
  | { readonly do: 'pass' }
  /** Every piece waits so long. */
  | { readonly do: 'delay'; readonly delayMs: number }
  /** The whole request waits so long, so that later ones overtake it. */
  | { readonly do: 'hold'; readonly delayMs: number }
  /** Both ends are reset. */
  | { readonly do: 'cut'; readonly direction: Direction; readonly afterBytes: number }
  /** Ended before its end: in good order, or by a reset. */
  | { readonly do: 'truncate'; readonly direction: Direction; readonly afterBytes: number; readonly by: 'fin' | 'rst' }
  /** Nothing is forwarded any more, and nobody is told. */
  | { readonly do: 'freeze'; readonly direction: Direction | 'both'; readonly afterBytes: number }
  | { readonly do: 'flip'; readonly direction: Direction; readonly atByte: number; readonly bit: number }
  /** The request is sent once more on a connection of its own, this much later; or before, and then it waits. */
  | { readonly do: 'replay'; readonly delayMs: number; readonly comesFirst: boolean }
  /** After so many bytes come those of the answer of another connection, from the same place in it. */
  | { readonly do: 'splice'; readonly afterBytes: number };

export interface FaultProxy {
  readonly url: string;
  /** Which faults struck since the schedule began. */
  readonly struck: readonly Fault['do'][];
  /** Bytes that came in from either end. */
  readonly moved: () => number;
  /** What happens from now on. */
  begin(schedule: Schedule): void;
  /** Closes all connections; resolves when both ends of each are closed. */
  drop(): Promise<void>;
  close(): Promise<void>;
}

interface Schedule {
  /** The address that the gateway sees. */
  readonly localAddress: string;
  /** For the next connection. */
  readonly nextFault: () => Fault;
}

const CALM: Schedule = { localAddress: '127.0.0.1', nextFault: () => ({ do: 'pass' }) };

/** Answers that can be spliced in; the newest of them. */
const RECORDED = 8;

/** @param port of the gateway */
export async function startFaultProxy(port: number): Promise<FaultProxy> {
  const proxy = new Proxy(port);
  await proxy.listen();
  return proxy;
}

class Proxy implements FaultProxy {
  readonly struck: Fault['do'][] = [];
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #answers: Buffer[] = [];
  readonly #server = createServer((client) => this.#connect(client));
  #schedule = CALM;
  #moved = 0;

  constructor(port: number) {
    this.#port = port;
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  moved(): number {
    return this.#moved;
  }

  begin(schedule: Schedule): void {
    this.#schedule = schedule;
    this.struck.length = 0;
    this.#answers.length = 0;
  }

  async drop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await Promise.all([...this.#sockets].map((socket) => once(socket.destroy(), 'close')));
  }

  async close(): Promise<void> {
    this.#server.close();
    await Promise.all([once(this.#server, 'close'), this.drop()]);
  }

  #connect(client: Socket): void {
    const gateway = this.#dial();
    const wire = new Wire(this, { client, gateway, fault: this.#schedule.nextFault() });
    this.#keep(client);
    client.on('data', (bytes) => wire.up(bytes)).on('end', () => wire.end('up'));
    gateway.on('data', (bytes) => wire.down(bytes)).on('end', () => wire.end('down'));
    client.on('close', () => wire.closed('up'));
    gateway.on('close', () => wire.closed('down'));
  }

  #dial(): Socket {
    const { localAddress } = this.#schedule;
    return this.#keep(connect({ host: '127.0.0.1', port: this.#port, localAddress, allowHalfOpen: true }));
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.setNoDelay(true).on('data', ({ length }) => (this.#moved += length));
    // Resets are what this is about.
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    return socket;
  }

  /** Sends what somebody else has sent, and hears the answer out. */
  playBack(request: Buffer): void {
    const gateway = this.#dial();
    gateway.resume().on('end', () => gateway.destroy());
    gateway.write(request);
  }

  later(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, delayMs);
    this.#timers.add(timer);
  }

  record(answer: Buffer): void {
    this.#answers.push(answer);
    if (this.#answers.length > RECORDED) this.#answers.shift();
  }

  get lastAnswer(): Buffer | undefined {
    return this.#answers.at(-1);
  }
}

interface Ends {
  readonly client: Socket;
  readonly gateway: Socket;
  readonly fault: Fault;
}

/** One connection through the proxy. */
class Wire {
  readonly #proxy: Proxy;
  readonly #ends: Ends;
  readonly #bytes = { up: 0, down: 0 };
  readonly #heard: Record<Direction, Buffer[]> = { up: [], down: [] };
  #hasStruck = false;
  #isHeld = false;

  constructor(proxy: Proxy, ends: Ends) {
    this.#proxy = proxy;
    this.#ends = ends;
  }

  up(bytes: Buffer): void {
    this.#heard.up.push(bytes);
    const { fault, gateway } = this.#ends;
    if (fault.do === 'hold' || fault.do === 'replay') return this.#holdRequest(fault);
    this.#pass('up', gateway, bytes);
  }

  down(bytes: Buffer): void {
    this.#heard.down.push(bytes);
    this.#pass('down', this.#ends.client, bytes);
  }

  end(direction: Direction): void {
    if (direction === 'down') this.#proxy.record(Buffer.concat(this.#heard.down));
    if (this.#isFrozen(direction)) return;
    const { fault, client, gateway } = this.#ends;
    const to = direction === 'up' ? gateway : client;
    if (fault.do === 'delay') this.#proxy.later(fault.delayMs, () => to.end());
    else to.end();
  }

  /** Who is frozen out hears nothing of the other end. */
  closed(direction: Direction): void {
    if (this.#isFrozen(direction)) return;
    const { client, gateway } = this.#ends;
    const other = direction === 'up' ? gateway : client;
    other.destroySoon();
  }

  /** Pieces that come within one turn of the loop are one request, which is what the clients of these tests send. */
  #holdRequest(fault: Extract<Fault, { do: 'hold' | 'replay' }>): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    const comesFirst = fault.do === 'replay' && fault.comesFirst;
    const isBehind = fault.do === 'hold' || comesFirst;
    this.#markRevoked();
    const take = (): Buffer => Buffer.concat(this.#heard.up.splice(0));
    this.#proxy.later(1, () => {
      const request = Buffer.concat(this.#heard.up);
      if (comesFirst) this.#proxy.playBack(request);
      else if (fault.do === 'replay') this.#proxy.later(fault.delayMs, () => this.#proxy.playBack(request));
      this.#proxy.later(isBehind ? fault.delayMs : 0, () => {
        this.#isHeld = false;
        const { gateway } = this.#ends;
        if (!gateway.destroyed) gateway.write(take());
      });
    });
  }

  #pass(direction: Direction, to: Socket, bytes: Buffer): void {
    const before = this.#bytes[direction];
    this.#bytes[direction] += bytes.length;
    if (this.#isFrozen(direction)) return;
    const { fault } = this.#ends;
    if (fault.do === 'delay') {
      this.#markRevoked();
      this.#proxy.later(fault.delayMs, () => this.#write(to, bytes));
      return;
    }
    const at = placeOf(fault, direction);
    if (at === undefined || before + bytes.length <= at) return this.#write(to, bytes);
    this.#markRevoked();
    if (fault.do === 'flip') return this.#write(to, flipped(bytes, at - before, fault.bit));
    if (before < at) this.#write(to, bytes.subarray(0, at - before));
    this.#end(to, at, before, bytes);
  }

  /** What comes of it at the place where the fault is. */
  #end(to: Socket, at: number, before: number, bytes: Buffer): void {
    const { fault, client, gateway } = this.#ends;
    if (fault.do === 'cut') {
      client.resetAndDestroy();
      gateway.resetAndDestroy();
    } else if (fault.do === 'truncate') {
      if (fault.by === 'fin') to.end();
      else to.resetAndDestroy();
    } else {
      const other = this.#proxy.lastAnswer;
      if (other === undefined) this.#write(to, bytes.subarray(Math.max(0, at - before)));
      else if (before <= at) this.#write(to, other.subarray(at));
    }
  }

  #write(to: Socket, bytes: Buffer): void {
    if (bytes.length > 0 && !to.destroyed && to.writable) to.write(bytes);
  }

  #isFrozen(direction: Direction): boolean {
    const { fault } = this.#ends;
    if (fault.do !== 'freeze') return false;
    if (fault.direction === 'both')
      return Math.max(this.#bytes.up, this.#bytes.down) > fault.afterBytes && this.#markRevoked();
    return fault.direction === direction && this.#bytes[direction] > fault.afterBytes && this.#markRevoked();
  }

  #markRevoked(): true {
    if (!this.#hasStruck) this.#proxy.struck.push(this.#ends.fault.do);
    this.#hasStruck = true;
    return true;
  }
}

/** Where in this direction the fault is. */
function placeOf(fault: Fault, direction: Direction): number | undefined {
  if (fault.do === 'flip') return fault.direction === direction ? fault.atByte : undefined;
  if (fault.do === 'cut' || fault.do === 'truncate')
    return fault.direction === direction ? fault.afterBytes : undefined;
  return fault.do === 'splice' && direction === 'down' ? fault.afterBytes : undefined;
}

function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  if (at < 0) return bytes;
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ (1 << bit);
  return changed;
}
