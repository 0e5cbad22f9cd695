/**
 * mDNS (RFC 6762, RFC 6763): says in the network that a gateway is here, and hears who else says so. Anybody can say
 * anything there, so nothing is decided by it: it saves typing an address.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type Bonjour from 'bonjour-service';
import type { Service } from 'bonjour-service';

/** `_svc._tcp` */
const TYPE = 'svc';
/** RFC 1035 §2.3.4. */
const MAX_NAME_BYTES = 63;
/** Questions and answers are lost now and then. */
const ASK_AGAIN_MS = 700;
const LAST_WORDS_MS = 500;
const MAX_SIGHTINGS = 32;

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
 * Begins as soon as `what` is known.
 * @param onError told once why nobody hears of it
 */
export function advertise(what: Promise<Advertised>, onError: (error: unknown) => void): Advertisement {
  let isStopped = false;
  let bonjour: Bonjour | undefined;
  const fail = once((error) => {
    if (!isStopped) onError(error);
  });
  const begin = async (): Promise<void> => {
    const { name, port, gatewayId, hasIPv6 } = await what;
    const opened = await open(fail);
    if (isStopped) return close(opened);
    bonjour = opened;
    const id = gatewayId.replaceAll(' ', '').slice(0, 8);
    // A name of its own, so that no other program's answers for this machine are contradicted.
    const host = `postern-${id}.local`;
    bonjour.publish({ name: `${shortened(name)} ${id}`, type: TYPE, port, host, disableIPv6: !hasIPv6, txt: { id } });
  };
  begin().catch(fail);
  return {
    async stop() {
      isStopped = true;
      if (bonjour !== undefined) await close(bonjour);
    },
  };
}

/** Room is left for the id; a dot would end the name. */
function shortened(name: string): string {
  const characters = Array.from(name.replaceAll('.', '-'));
  while (Buffer.byteLength(characters.join('')) > MAX_NAME_BYTES - 9) characters.pop();
  return characters.join('');
}

/** Where an answer came from, and the port that it names. */
export interface Sighting {
  readonly address: string;
  readonly port: number;
}

/** Whoever answers within this time. @param signal ends the waiting @throws where the network does not let one ask */
export async function lookAround(forMs: number, signal: AbortSignal): Promise<readonly Sighting[]> {
  const sightings = new Map<string, Sighting>();
  const failed = new AbortController();
  const bonjour = await open((error) => failed.abort(error));
  const browser = bonjour.find({ type: TYPE }, ({ referer, port }: Service) => {
    if (referer === undefined || sightings.size >= MAX_SIGHTINGS) return;
    sightings.set(`${referer.address} ${port}`, { address: referer.address, port });
  });
  const until = AbortSignal.any([signal, failed.signal]);
  for (let waitedMs = 0; waitedMs < forMs && !until.aborted; waitedMs += ASK_AGAIN_MS) {
    await sleep(ASK_AGAIN_MS, undefined, { signal: until }).catch(() => undefined);
    browser.update();
  }
  browser.stop();
  await close(bonjour);
  failed.signal.throwIfAborted();
  return [...sightings.values()];
}

/** Read only where it is used. */
async function open(onError: (error: unknown) => void): Promise<Bonjour> {
  const { default: Opened } = await import('bonjour-service');
  const bonjour = new Opened({}, onError);
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
  await Promise.race([said, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
  await new Promise<void>((resolve) => bonjour.destroy(() => resolve()));
}

function once(run: (error: unknown) => void): (error: unknown) => void {
  let isDone = false;
  return (error) => {
    if (!isDone) run(error);
    isDone = true;
  };
}
