/**
 * mDNS (RFC 6762, RFC 6763): says in the network that a gateway is here, and hears who else says so. Anybody can say
 * anything there, so nothing is decided by it: it saves typing an address.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type Bonjour from 'bonjour-service';
import type { Browser, Service } from 'bonjour-service';
import { setProcessTimer } from '../core/timer.ts';
import { ownInterfaces } from './addresses.ts';
import { watchNetwork } from './network-watch.ts';

/** `_svc._tcp` */
const TYPE = 'svc';
/** RFC 1035 §2.3.4. */
const MAX_NAME_BYTES = 63;
/** Questions and answers are lost now and then. */
const ASK_AGAIN_MS = 700;
const CLOSE_GRACE_MS = 500;
const MAX_INSTANCES = 32;

export interface Advertised {
  readonly name: string;
  readonly port: number;
  /** See `formatGatewayId`; its first four bytes are told. */
  readonly gatewayId: string;
  /** Whether it listens there; an address at which it doesn't is not told. */
  readonly hasIPv6: boolean;
}

export interface Advertisement {
  /** Says that it is gone. */
  stop(): Promise<void>;
}

/**
 * Begins as soon as `what` is known, in each network that the machine is in, and goes along when those change.
 * @param onError told once why nobody hears of it
 */
export function advertise(what: Promise<Advertised>, onError: (error: unknown) => void): Advertisement {
  const fail = once((error) => {
    if (!isStopped) onError(error);
  });
  const networks = new Networks(fail);
  let isStopped = false;
  let watch: { close(): void } | undefined;
  const begin = async (): Promise<void> => {
    const advertised = await what;
    if (isStopped) return;
    const renew = () => networks.renew((bonjour) => publish(bonjour, advertised));
    watch = watchNetwork({ setTimer: setProcessTimer, onChange: () => void renew().catch(fail) });
    await renew();
  };
  begin().catch(fail);
  return {
    async stop() {
      isStopped = true;
      watch?.close();
      await networks.close();
    },
  };
}

function publish(bonjour: Bonjour, { name, port, gatewayId, hasIPv6 }: Advertised): void {
  const id = gatewayId.replaceAll(' ', '').slice(0, 8);
  bonjour.publish({
    name: `${shortened(name)} ${id}`,
    type: TYPE,
    port,
    // A name of its own, so that no other program's answers for this machine are contradicted.
    host: `postern-${id}.local`,
    disableIPv6: !hasIPv6,
    txt: { id },
    // It would be taken for a stranger by what says the same in another network of this machine.
    probe: false,
  });
}

/** Room is left for the id; a dot would end the name. */
function shortened(name: string): string {
  const characters = Array.from(name.replaceAll('.', '-'));
  while (Buffer.byteLength(characters.join('')) > MAX_NAME_BYTES - 9) characters.pop();
  return characters.join('');
}

/** Where an answer came from, and the port that it names. */
export interface ServiceInstance {
  readonly address: string;
  readonly port: number;
}

/** Whoever answers within this time. @param signal ends the waiting @throws where the network does not let one ask */
export async function browse(forMs: number, signal: AbortSignal): Promise<readonly ServiceInstance[]> {
  const instances = new Map<string, ServiceInstance>();
  const failed = new AbortController();
  const networks = new Networks((error) => failed.abort(error));
  const browsers: Browser[] = [];
  await networks.renew((bonjour) => {
    const found = ({ referer, port }: Service): void => {
      if (referer === undefined || instances.size >= MAX_INSTANCES) return;
      instances.set(`${referer.address} ${port}`, { address: referer.address, port });
    };
    browsers.push(bonjour.find({ type: TYPE }, found));
  });
  const until = AbortSignal.any([signal, failed.signal]);
  for (let waitedMs = 0; waitedMs < forMs && !until.aborted; waitedMs += ASK_AGAIN_MS) {
    await sleep(ASK_AGAIN_MS, undefined, { signal: until }).catch(() => undefined);
    for (const browser of browsers) browser.update();
  }
  for (const browser of browsers) browser.stop();
  await networks.close();
  failed.signal.throwIfAborted();
  return [...instances.values()];
}

/**
 * One socket for each network that the machine is in: what is said through a socket goes out into one of them, which the
 * system would choose.
 */
class Networks {
  readonly #opened = new Map<string, Bonjour>();
  readonly #failed = new Set<string>();
  readonly #onError: (error: unknown) => void;
  #isClosed = false;
  /** What is opened and closed, one after the other. */
  #turn: Promise<void> = Promise.resolve();

  /** @param onError told when none of the networks lets one ask or answer */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Leaves networks that are gone, and joins those that are new. @param begin called with each of these */
  renew(begin: (bonjour: Bonjour) => void): Promise<void> {
    const turn = this.#turn.then(() => this.#renew(this.#isClosed ? [] : ownAddresses(), begin));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.renew(() => undefined);
  }

  async #renew(addresses: readonly string[], begin: (bonjour: Bonjour) => void): Promise<void> {
    const gone = [...this.#opened].filter(([address]) => !addresses.includes(address));
    for (const [address] of gone) {
      this.#opened.delete(address);
      this.#failed.delete(address);
    }
    await Promise.all(gone.map(([, bonjour]) => close(bonjour)));
    for (const address of addresses) {
      if (this.#opened.has(address)) continue;
      const bonjour = await open(address, (error) => this.#fail(address, error));
      this.#opened.set(address, bonjour);
      begin(bonjour);
    }
  }

  #fail(address: string, error: unknown): void {
    this.#failed.add(address);
    if ([...this.#opened.keys()].every((one) => this.#failed.has(one))) this.#onError(error);
  }
}

/** One IPv4 address of each interface; without a network, other programs of this machine can be spoken to all the same. */
function ownAddresses(): readonly string[] {
  const outer = Object.values(ownInterfaces()).flatMap(
    (addresses = []) => addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? [],
  );
  return outer.length === 0 ? ['127.0.0.1'] : outer;
}

/** Read only where it is used. */
async function open(address: string, onError: (error: unknown) => void): Promise<Bonjour> {
  const { default: Opened } = await import('bonjour-service');
  // Of `multicast-dns`: out by this interface, while what others send to the group's address arrives only at any address.
  const options: object = { interface: address, bind: '0.0.0.0' };
  const bonjour = new Opened(options, onError);
  // A port that is not to be had is told here and nowhere else, and would end the process.
  const server: unknown = Reflect.get(bonjour, 'server');
  const mdns: unknown = typeof server === 'object' && server !== null ? Reflect.get(server, 'mdns') : undefined;
  if (!(mdns instanceof EventEmitter)) throw new TypeError('bonjour-service is not what it was');
  mdns.on('error', onError);
  return bonjour;
}

/** A network that does not take the last words is not waited for. */
async function close(bonjour: Bonjour): Promise<void> {
  const said = new Promise<void>((resolve) => bonjour.unpublishAll(() => resolve()));
  await Promise.race([said, sleep(CLOSE_GRACE_MS, undefined, { ref: false })]);
  await new Promise<void>((resolve) => bonjour.destroy(() => resolve()));
}

function once(run: (error: unknown) => void): (error: unknown) => void {
  let isDone = false;
  return (error) => {
    if (!isDone) run(error);
    isDone = true;
  };
}
