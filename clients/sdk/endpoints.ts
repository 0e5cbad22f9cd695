/**
 * Where home is found by now. Its addresses change, and a relay may be taken up after a device was paired: so the device
 * asks once in a while, sealed, when it is there anyway.
 */
import { findGatewayFacts, HOME_PATH } from '../../identity/pairing.ts';
import type { PairedDevice } from './device.ts';
import { shownRelays } from './device.ts';
import { httpUrls } from './http-transport.ts';
import type { PathDescription } from './transport.ts';

const EVERY_MS = 60 * 60_000;

interface WhereaboutsOptions {
  readonly device: PairedDevice;
  readonly now: () => number;
  /** A sealed GET. */
  readonly ask: (path: string) => Promise<Response>;
  /** The way that it went. */
  readonly path: () => PathDescription | undefined;
  readonly onEndpointsChanged: (device: PairedDevice) => void;
}

export class Endpoints {
  readonly #options: WhereaboutsOptions;
  #askedAtMs = -Infinity;

  constructor(options: WhereaboutsOptions) {
    this.#options = options;
  }

  /** A call has been answered: there is somebody to ask. */
  consider(): void {
    const { now } = this.#options;
    if (now() - this.#askedAtMs < EVERY_MS) return;
    this.#askedAtMs = now();
    // An older gateway does not know, and the next hour is soon enough for one that is gone.
    this.#ask().catch(() => undefined);
  }

  async #ask(): Promise<void> {
    const { device, ask, path, onEndpointsChanged } = this.#options;
    const answer = await ask(HOME_PATH);
    const body = new Uint8Array(await answer.arrayBuffer());
    const facts = answer.ok ? findGatewayFacts(body) : undefined;
    if (facts === undefined) return;
    const way = path();
    // An address that leads there is a good one, whether or not home knows of it.
    const urls = httpUrls([...facts.urls, ...(way?.kind === 'lan' ? [way.url] : [])]);
    const relays = shownRelays(facts.relays);
    if (sameWays({ urls, relays }, device)) return;
    onEndpointsChanged({ ...device, gatewayName: facts.gatewayName, urls, relays });
  }
}

type Ways = Pick<PairedDevice, 'urls' | 'relays'>;

/** In whatever order. */
function sameWays(one: Ways, other: Ways): boolean {
  const named = ({ urls, relays }: Ways): string =>
    JSON.stringify([...urls, ...relays.map(({ origin, rid }) => `${origin} ${rid}`)].toSorted());
  return named(one) === named(other);
}
