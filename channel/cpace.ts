/**
 * CPace (draft-irtf-cfrg-cpace-21) with Ristretto255 and SHA-512: from a code of six digits that one side shows and the
 * other side's owner types, a key. Each side learns whether the other knew the code, and nobody learns anything that
 * could be tried out later.
 *
 *     PRS = the code       sid = challenge ‖ u8 try       CI = LP16("svc-v1 pair") ‖ GS       ADa, ADb empty
 *     initiator (device)  Ya ─►          ◄─ Yb  responder (gateway)          ISK, the same on both sides
 *     psk0 = X(HKDF-Extract("svc-v1 pair", ISK), "svc-v1 pair psk", "", 32)
 *
 * Neither share is an answer to the other, so they may cross. Who holds ISK has not proved it yet: the handshake under
 * psk0 does that, and binds the device's static key; that of the gateway is in CI.
 */
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js';
import { bytesToNumberLE } from '@noble/curves/utils.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, EMPTY, lengthPrefixed, utf8ToBytes } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { ChannelError } from './errors.ts';
import { expandLabel, hkdfExtract } from './hkdf.ts';
import type { Psk, PublicKey } from './keys.ts';
import { asPsk, KEY_BYTES } from './keys.ts';

/** §8.3: the domain separation identifier of this group. */
const DSI = 'CPaceRistretto255';
/** s_in_bytes of SHA-512: the size of its input block, to which the generator string is padded (§6.2). */
const HASH_BLOCK_BYTES = 128;
/** Twice as long as the order of the group, so that reducing it leaves no bias. */
const SCALAR_SEED_BYTES = 64;

export interface CpaceInput {
  /** PRS, the password-related string. */
  readonly password: Uint8Array;
  /** CI: who talks to whom. */
  readonly channelId: Uint8Array;
  readonly sessionId: Uint8Array;
  readonly role: 'initiator' | 'responder';
  /** ADa or ADb: what else this side wants bound. */
  readonly associatedData?: Uint8Array;
}

export interface CpaceSide {
  /** Ya or Yb, to be sent; 32 bytes. */
  readonly share: Uint8Array;
  /** The 64 bytes of ISK. Once: another guess at the code takes another share. @throws ChannelError `handshake_refused` if the share is no element or the neutral one */
  finish(otherShare: Uint8Array, otherAssociatedData?: Uint8Array): Uint8Array;
}

export function startCpace(crypto: Crypto, input: CpaceInput): CpaceSide {
  const { Fn } = ristretto255.Point;
  const seed = crypto.randomBytes(SCALAR_SEED_BYTES);
  let unused: bigint | undefined = Fn.create(bytesToNumberLE(seed));
  seed.fill(0);
  const share = generatorOf(input).multiply(unused).toBytes();
  return {
    share,
    finish(otherShare, otherAssociatedData = EMPTY) {
      if (unused === undefined) throw new TypeError('a share is for one exchange');
      const scalar = unused;
      unused = undefined;
      const secret = multiplyChecked(scalar, otherShare);
      const own = lengthValue(share, input.associatedData ?? EMPTY);
      const other = lengthValue(otherShare, otherAssociatedData);
      const [first, second] = input.role === 'initiator' ? [own, other] : [other, own];
      const key = lengthValue(utf8ToBytes(`${DSI}_ISK`), input.sessionId, secret);
      return sha512(concatBytes(key, first, second));
    },
  };
}

/** calculate_generator of §6.2. The padding puts all that is secret into the first block of the hash. */
function generatorOf({ password, channelId, sessionId }: CpaceInput): RistrettoPoint {
  const before = lengthValue(utf8ToBytes(DSI), password);
  const padding = new Uint8Array(Math.max(0, HASH_BLOCK_BYTES - 1 - before.length));
  const hash = sha512(concatBytes(before, lengthValue(padding, channelId, sessionId)));
  // RFC 9496 §4.3.4. The type calls it optional because other groups of the library don't have it.
  const generator = ristretto255_hasher.deriveToCurve?.(hash);
  if (generator === undefined) throw new TypeError('@noble/curves has no element derivation for Ristretto255');
  return generator;
}

type RistrettoPoint = InstanceType<typeof ristretto255.Point>;

/** G.scalar_mult_vfy of §6.3. */
function multiplyChecked(scalar: bigint, share: Uint8Array): Uint8Array {
  const point = decodePoint(share);
  // The group has prime order and the scalar is not zero, so only the neutral element leads to itself.
  if (point === undefined || point.is0()) throw new ChannelError('handshake_refused');
  return point.multiply(scalar).toBytes();
}

function decodePoint(share: Uint8Array): RistrettoPoint | undefined {
  try {
    return ristretto255.Point.fromBytes(share);
  } catch {
    return undefined;
  }
}

/** lv_cat of the draft's appendix A: each part behind its length in LEB128. */
function lengthValue(...parts: readonly Uint8Array[]): Uint8Array {
  return concatBytes(...parts.flatMap((part) => [leb128(part.length), part]));
}

function leb128(value: number): Uint8Array {
  const bytes = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...bytes, rest);
}

export interface PairingCode {
  /** The six digits as they are shown. */
  readonly code: string;
  /** The challenge of this request, 16 bytes, and which of its tries this is. */
  readonly challenge: Uint8Array;
  readonly attempt: number;
  /** GS. */
  readonly gatewayKey: PublicKey;
}

/** CPace over a pairing code. @throws RangeError if the code is not six digits, which the one who typed it can be told */
export function startPairingCode(crypto: Crypto, role: CpaceInput['role'], pairing: PairingCode): CpaceSide {
  if (!/^\d{6}$/u.test(pairing.code)) throw new RangeError('a pairing code has six digits');
  return startCpace(crypto, {
    role,
    password: utf8ToBytes(pairing.code),
    sessionId: concatBytes(pairing.challenge, Uint8Array.of(pairing.attempt)),
    channelId: concatBytes(lengthPrefixed(utf8ToBytes(PAIRING_LABEL)), pairing.gatewayKey),
  });
}

const PAIRING_LABEL = 'svc-v1 pair';

/** psk0 of the pairing handshake, from ISK, which is overwritten. */
export function derivePairingPsk(crypto: Crypto, sharedKey: Uint8Array): Psk {
  const prk = hkdfExtract(crypto, utf8ToBytes(PAIRING_LABEL), sharedKey);
  sharedKey.fill(0);
  return asPsk(expandLabel(crypto, prk, { label: 'svc-v1 pair psk', context: EMPTY, length: KEY_BYTES }));
}
