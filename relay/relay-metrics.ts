/** The figures behind `GET /metrics`, for Prometheus: sums over everybody, never of one gateway. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

export interface RelayTally {
  gateways: number;
  clients: number;
  /** Connections that have not said who they are. */
  unauthenticated: number;
  streams: number;
  registrations: number;
  takeovers: number;
  joins: number;
  frames: number;
  bytes: number;
}

export interface RelayMetrics {
  /** Counted by hand, because a frame costs less than a call of the library. */
  readonly tally: RelayTally;
  countRefusal(code: number): void;
  readonly contentType: string;
  text(): Promise<string>;
}

const GAUGES = {
  gateways: 'Gateways that are registered.',
  clients: 'Clients that have joined.',
  unauthenticated: 'Connections that have not said who they are.',
  streams: 'Streams that are open.',
} as const;

const COUNTERS = {
  registrations: 'Gateways that registered.',
  takeovers: 'Gateways whose place a newer proof took.',
  joins: 'Clients that joined.',
  frames: 'Frames of data that were passed on.',
  bytes: 'Bytes of data that were passed on.',
} as const;

export function createRelayMetrics(held: { readonly bytes: number }): RelayMetrics {
  const registry = new Registry();
  const registers = [registry];
  const tally: RelayTally = {
    gateways: 0,
    clients: 0,
    unauthenticated: 0,
    streams: 0,
    registrations: 0,
    takeovers: 0,
    joins: 0,
    frames: 0,
    bytes: 0,
  };
  const gauge = (name: string, help: string, read: () => number): unknown =>
    new Gauge({
      name: `postern_relay_${name}`,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  for (const [name, help] of Object.entries(GAUGES)) gauge(name, help, () => (isTally(tally, name) ? tally[name] : 0));
  gauge('held_bytes', 'Bytes that wait for those who do not read.', () => held.bytes);
  for (const [name, help] of Object.entries(COUNTERS)) addCounter(registry, tally, name, help);
  const refusals = new Counter({
    name: 'postern_relay_refusals_total',
    help: 'Connections that ended before they were let in, by the code that they were given.',
    labelNames: ['code'] as const,
    registers,
  });
  collectDefaultMetrics({ register: registry });
  return {
    tally,
    countRefusal: (code) => refusals.inc({ code }),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}

function addCounter(registry: Registry, tally: RelayTally, name: string, help: string): void {
  void new Counter({
    name: `postern_relay_${name}_total`,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(isTally(tally, name) ? tally[name] : 0);
    },
  });
}

function isTally(tally: RelayTally, name: string): name is keyof RelayTally {
  return Object.hasOwn(tally, name);
}
