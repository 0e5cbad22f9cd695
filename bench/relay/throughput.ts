/** Bytes from a gateway to a client through something: each within the credits that the relay's frames give. */
import type { WebSocket } from 'ws';
import { decodeFrame, encodeFrame } from '../../relay/wire/frame.ts';

const STREAM_WINDOW = 256 * 1024;
const HEADER = 6;

export interface Pipe {
  /** The sender's end, and the streams that it sends on. */
  readonly sender: WebSocket;
  readonly senderStreams: readonly number[];
  readonly receiver: WebSocket;
  /** Whether credit is granted by frames; else by the receiver's word, which costs nothing: both are in this process. */
  readonly hasCredit: boolean;
}

/** Sends for so long on all streams in turn. @returns payload bytes that arrived, a second */
export async function measure(pipe: Pipe, { frameBytes, ms }: { frameBytes: number; ms: number }): Promise<number> {
  const { sender, receiver, senderStreams, hasCredit } = pipe;
  const frames = senderStreams.map((stream) =>
    encodeFrame({ type: 'data', stream, bytes: new Uint8Array(frameBytes), isEnd: false }),
  );
  const credit = senderStreams.map(() => STREAM_WINDOW);
  let connectionCredit = 4 * 1024 * 1024;
  let arrived = 0;
  const taken = new Map<number, number>();
  let isOver = false;
  let [startedAt, counted] = [performance.now(), 0];

  const pump = (): void => {
    if (isOver) return;
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const [index, frame] of frames.entries()) {
        if ((credit[index] ?? 0) < frameBytes || connectionCredit < frameBytes || sender.bufferedAmount > 262_144)
          continue;
        credit[index] = (credit[index] ?? 0) - frameBytes;
        connectionCredit -= frameBytes;
        sender.send(frame);
        isMoving = true;
      }
    }
  };
  const onGrant = (data: Buffer): void => {
    const frame = decodeFrame(data);
    if (frame.type !== 'window') return;
    if (frame.stream === 0) connectionCredit += frame.credit;
    else credit[senderStreams.indexOf(frame.stream)]! += frame.credit;
    pump();
  };
  let connectionTaken = 0;
  const onData = (data: Buffer): void => {
    if (data[0] !== 0x11) return;
    const length = data.length - HEADER;
    arrived += length;
    const stream = data.readUInt32BE(2);
    const total = (taken.get(stream) ?? 0) + length;
    connectionTaken += length;
    if (total >= STREAM_WINDOW / 4) {
      taken.set(stream, 0);
      if (hasCredit) receiver.send(encodeFrame({ type: 'window', stream, credit: total }));
      else credit[senderStreams.indexOf(stream)]! += total;
    } else taken.set(stream, total);
    if (connectionTaken >= 1024 * 1024) {
      if (hasCredit) receiver.send(encodeFrame({ type: 'window', stream: 0, credit: connectionTaken }));
      else connectionCredit += connectionTaken;
      connectionTaken = 0;
    }
    pump();
  };
  sender.on('message', onGrant);
  receiver.on('message', onData);
  const pumping = setInterval(pump, 1);
  pump();
  await new Promise((resolve) => void setTimeout(resolve, ms / 4));
  [startedAt, counted] = [performance.now(), arrived];
  await new Promise((resolve) => void setTimeout(resolve, ms));
  const perSecond = ((arrived - counted) / (performance.now() - startedAt)) * 1000;
  isOver = true;
  clearInterval(pumping);
  sender.off('message', onGrant);
  receiver.off('message', onData);
  return perSecond;
}
