/** What a relay allows, each of it the operator's to change: `--limit NAME=VALUE`. */

export const DEFAULT_LIMITS = {
  /** Connections of clients to one gateway. */
  connectionsPerGateway: 64,
  /** Streams of one gateway, over all its clients. */
  streamsPerGateway: 128,
  streamsPerConnection: 32,
  /** Streams of a connection that may only pair. */
  streamsWhilePairing: 4,
  /** Handshakes that a connection may begin; a second's worth may come at once, and one more second's. */
  handshakesPerSecond: 2,
  /** Connections that have not yet said who they are: more of them at once would only make all of them late. */
  unauthenticatedConnections: 256,
  /** … from one address (IPv6: a /64), of which the oldest gives way; 0 is no limit, for a relay behind a proxy. */
  unauthenticatedPerAddress: 64,
  /** Of one gateway and all its clients, in equal parts for those who use it; 0 is no limit. */
  bytesPerSecond: 2 * 1024 * 1024,
  /** Of each tag. */
  burstBytes: 8 * 1024 * 1024,
  /** Of one gateway and all its clients, a UTC day; see `daily-quota.ts`. 0 is no limit. */
  bytesPerDay: 0,
  connectionWindowBytes: 4 * 1024 * 1024,
  streamWindowBytes: 256 * 1024,
  /** What the whole relay holds for those who don't read; beyond that nobody is granted anything new. */
  heldBytes: 256 * 1024 * 1024,
  tagsPerGateway: 4096,
  /** To say who one is. */
  authenticationMs: 5_000,
  pingEveryMs: 20_000,
  pingSpreadMs: 3_000,
  deadAfterMs: 45_000,
  /** At the end: what running streams have left, and over how long those who must leave spread their return. */
  drainMs: 30_000,
  drainSpreadMs: 10_000,
} as const satisfies Readonly<Record<string, number>>;

export type LimitName = keyof typeof DEFAULT_LIMITS;
export type RelayLimits = Readonly<Record<LimitName, number>>;

/** Where 0 means that there is no limit. */
const MAY_BE_ZERO: ReadonlySet<LimitName> = new Set(['unauthenticatedPerAddress', 'bytesPerSecond', 'bytesPerDay']);

export function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(DEFAULT_LIMITS, name);
}

/** @returns the limits, or in plain words what is wrong with them */
export function parseLimits(texts: readonly string[]): RelayLimits | string {
  const changed: Partial<Record<LimitName, number>> = {};
  for (const text of texts) {
    const [name = '', digits = ''] = text.split('=', 2);
    if (!isLimitName(name)) return `there is no limit "${name}". There are: ${Object.keys(DEFAULT_LIMITS).join(', ')}.`;
    const value = /^[0-9]{1,12}$/u.test(digits) ? Number(digits) : -1;
    if (value < (MAY_BE_ZERO.has(name) ? 0 : 1))
      return `the limit ${name} is a whole number, such as ${name}=${DEFAULT_LIMITS[name]}.`;
    changed[name] = value;
  }
  const limits = { ...DEFAULT_LIMITS, ...changed };
  if (limits.streamWindowBytes > limits.connectionWindowBytes || limits.connectionWindowBytes > 0x7fff_ffff)
    return 'a stream’s window fits the connection’s, and that one 31 bits.';
  if (limits.streamsPerConnection > 0xffff || limits.streamsPerGateway > 0xffff)
    return 'streams are counted up to 65535.';
  return limits;
}
