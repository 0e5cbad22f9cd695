/** What comes through a relay, handed to the same channel server as what comes over HTTP. The caller is never more than a device. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { PAIRING_BODY_BYTES, PUBLIC_BODY_BYTES, SESSION_BODY_BYTES } from '../gateway/bounds.ts';
import { RequestError } from '../gateway/errors.ts';
import type { ChannelServer, SealedOp } from '../gateway/sealed/channel-server.ts';
import type { TunnelStream } from '../relay-client/tunnel-stream.ts';
import { RELAY_CODE, RelayError } from '../relay/wire/codes.ts';
import { OP } from '../relay/wire/op.ts';
import type { SetTimer } from '../core/timer.ts';

/** A request of which no byte came for so long is given up. */
const SILENT_REQUEST_MS = 60_000;

interface Entrance {
  readonly op: SealedOp;
  readonly maxBytes: number;
}

/** Codes are for devices in the owner's own network, so 0x20 and 0x22 lead nowhere. */
const ENTRANCES: ReadonlyMap<number, Entrance> = new Map([
  [OP.session, { op: 'session', maxBytes: SESSION_BODY_BYTES }],
  [OP.call, { op: 'call', maxBytes: PUBLIC_BODY_BYTES }],
  [OP.invite, { op: 'invite', maxBytes: PAIRING_BODY_BYTES }],
]);

interface Inside {
  readonly channelServer: Pick<ChannelServer, 'handle'>;
  readonly setTimer: SetTimer;
}

/** Resolves when it is over, however it ended. @throws what the channel server throws, which is a fault of ours */
export async function admitStream(stream: TunnelStream, { channelServer, setTimer }: Inside): Promise<void> {
  const entrance = ENTRANCES.get(stream.op);
  if (entrance === undefined) return stream.reset(RELAY_CODE.notAllowed);
  const source = {
    transport: 'relay',
    // The relay's word for who it is; it could call everybody the same, and make them all wait for each other.
    clientKey: bytesToHex(stream.connTag),
    gone: stream.signal,
    cut: () => stream.reset(RELAY_CODE.revoked),
  } as const;
  try {
    await stream.answer(channelServer.handle(entrance.op, source, bounded(stream, entrance.maxBytes, setTimer)));
  } catch (error) {
    // What is closed at the moment has told its owner why.
    if (error instanceof RequestError) stream.reset(RELAY_CODE.internal);
    else if (!(error instanceof RelayError)) throw error;
  }
}

/** The request, as long as it is no longer than it may be and keeps coming. @throws RelayError */
async function* bounded(stream: TunnelStream, maxBytes: number, setTimer: SetTimer): AsyncGenerator<Uint8Array> {
  const watch = (): (() => void) => setTimer(SILENT_REQUEST_MS, () => stream.reset(RELAY_CODE.timeout));
  let length = 0;
  let cancel = watch();
  try {
    for await (const piece of stream.bytes) {
      cancel();
      length += piece.length;
      if (length > maxBytes) throw new RelayError(RELAY_CODE.tooMany);
      yield piece;
      cancel = watch();
    }
  } finally {
    cancel();
  }
}
