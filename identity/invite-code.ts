/**
 * What a QR invite says, as bytes and as the text `SVC:…` that a camera reads and a person can paste.
 *
 *     offset  size  field
 *          0     1  version = 1
 *          1     1  flags: 1 a relay follows, 2 the owner will be asked, 4 good for one agent only
 *          2    32  GS, the gateway's static key: what the invite vouches for
 *         34    16  secret
 *         50     4  expiry, minutes since 1970
 *         54     1  number of LAN addresses, and for each: u8 length ‖ ASCII
 *          -     -  u8 length ‖ ASCII of the relay's origin ‖ rid 15, if bit 0 is set
 *
 * The text is upper-case base32 (RFC 4648 §6, no padding), which a QR code holds in its alphanumeric mode. In a link all
 * of it stands behind `#`, so that no server log, proxy or Referer gets to see it.
 */
import { findBase64url, formatBase64url } from '../channel/base64url.ts';
import { concatBytes, decodeUtf8, EMPTY, encodeU32, utf8ToBytes, viewOf } from '../channel/bytes.ts';
import type { InviteSecret, PublicKey, RoutingId } from '../channel/keys.ts';
import { asInviteSecret, asPublicKey, asRoutingId, ID_BYTES, KEY_BYTES, ROUTING_ID_BYTES } from '../channel/keys.ts';
import { findBase32, formatBase32 } from './base32.ts';

export interface InviteRelay {
  /** `wss://host[:port]` */
  readonly origin: string;
  readonly routingId: RoutingId;
}

export interface InviteCode {
  readonly gatewayKey: PublicKey;
  readonly secret: InviteSecret;
  /** Minutes since 1970; the invite is over when that minute begins. */
  readonly expiresAtMinute: number;
  /** The owner of the gateway has to say yes before the device is paired. */
  readonly needsApproval: boolean;
  readonly isForOneAgent: boolean;
  /** Where the gateway is in its own network: `http://host:port`. */
  readonly urls: readonly string[];
  readonly relay?: InviteRelay;
}

const VERSION = 1;
const FLAG = { relay: 1, approval: 2, agent: 4 } as const;
const PREFIX = 'SVC:';
const LINK_MARK = '#i=';
/** Addresses that one code holds; more of them make the QR code hard to read. */
export const MAX_INVITE_URLS = 4;

/** @throws RangeError for what does not fit: more than 4 addresses, or one of over 255 ASCII characters */
export function formatInviteCode(code: InviteCode): string {
  return PREFIX + formatBase32(encode(code));
}

/** @param appOrigin where the app is served that reads the link, without a final slash */
export function formatInviteLink(appOrigin: string, code: InviteCode): string {
  return `${appOrigin}/${LINK_MARK}${formatBase64url(encode(code))}`;
}

/** The code in what was scanned or pasted: its text in any case, with blanks and line breaks, or a link. `undefined` for anything else. */
export function findInviteCode(pasted: string): InviteCode | undefined {
  const bytes = bytesOf(pasted.replaceAll(/\s+/gu, ''));
  return bytes && decode(bytes);
}

function bytesOf(text: string): Uint8Array | undefined {
  const linkAt = text.indexOf(LINK_MARK);
  if (linkAt >= 0) return findBase64url(text.slice(linkAt + LINK_MARK.length));
  const upper = text.toUpperCase();
  return upper.startsWith(PREFIX) ? findBase32(upper.slice(PREFIX.length)) : undefined;
}

function encode({ gatewayKey, secret, expiresAtMinute, urls, relay, ...asks }: InviteCode): Uint8Array {
  if (urls.length > MAX_INVITE_URLS) throw new RangeError(`an invite holds ${MAX_INVITE_URLS} addresses at most`);
  const flags =
    (relay === undefined ? 0 : FLAG.relay) |
    (asks.needsApproval ? FLAG.approval : 0) |
    (asks.isForOneAgent ? FLAG.agent : 0);
  return concatBytes(
    Uint8Array.of(VERSION, flags),
    gatewayKey,
    secret,
    encodeU32(expiresAtMinute),
    Uint8Array.of(urls.length),
    ...urls.map(shortText),
    relay === undefined ? EMPTY : concatBytes(shortText(relay.origin), relay.routingId),
  );
}

function shortText(text: string): Uint8Array {
  const bytes = utf8ToBytes(text);
  if (bytes.length > 255 || !isVisibleAscii(text)) throw new RangeError('an address is up to 255 ASCII characters');
  return concatBytes(Uint8Array.of(bytes.length), bytes);
}

/** A code that anybody may have made: an unknown version or flag is refused, and so are bytes that are left over. */
function decode(bytes: Uint8Array): InviteCode | undefined {
  const read = new ByteReader(bytes);
  const [version, flags = 0] = read.take(2);
  const gatewayKey = read.take(KEY_BYTES);
  const secret = read.take(ID_BYTES);
  const expiry = read.take(4);
  const [count = 0] = read.take(1);
  const urls = Array.from({ length: Math.min(count, MAX_INVITE_URLS) }, () => read.takeShortText());
  const relay =
    (flags & FLAG.relay) === 0 ? undefined : { origin: read.takeShortText(), id: read.take(ROUTING_ID_BYTES) };
  if (!read.isAtEnd || version !== VERSION || flags > 7 || count > MAX_INVITE_URLS) return undefined;
  return {
    gatewayKey: asPublicKey(gatewayKey),
    secret: asInviteSecret(secret),
    expiresAtMinute: viewOf(expiry).getUint32(0),
    needsApproval: (flags & FLAG.approval) !== 0,
    isForOneAgent: (flags & FLAG.agent) !== 0,
    urls,
    ...(relay === undefined ? {} : { relay: { origin: relay.origin, routingId: asRoutingId(relay.id) } }),
  };
}

/** Takes fields one after the other. What is not there is taken as zeros, and `isAtEnd` is false from then on. */
class ByteReader {
  #rest: Uint8Array | undefined;

  constructor(bytes: Uint8Array) {
    this.#rest = bytes;
  }

  /** Every byte was taken, and none that was not there. */
  get isAtEnd(): boolean {
    return this.#rest?.length === 0;
  }

  take(length: number): Uint8Array {
    if (this.#rest === undefined || this.#rest.length < length) {
      this.#rest = undefined;
      return new Uint8Array(length);
    }
    const field = this.#rest.slice(0, length);
    this.#rest = this.#rest.subarray(length);
    return field;
  }

  takeShortText(): string {
    const [length = 0] = this.take(1);
    const text = decodeUtf8(this.take(length));
    if (text !== undefined && isVisibleAscii(text)) return text;
    this.#rest = undefined;
    return '';
  }
}

function isVisibleAscii(text: string): boolean {
  return /^[\x21-\x7e]*$/u.test(text);
}
