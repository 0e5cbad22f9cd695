/**
 * The end of a response, for all that counts or works for it: the answer went out, or its connection is gone. A response
 * says so only once, and its client may have left before anybody listened.
 */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** Calls `then` once, when nothing more of this response can be sent; at once where that is so by now. */
export function whenClosed(response: ServerResponse, then: () => void): void {
  if (response.destroyed) then();
  else response.once('close', then);
}

/** Calls `then` if the client says its last word before the response is closed: it waits for the answer, or it has left. */
export function whenHalfClosed(response: ServerResponse, then: () => void): void {
  const { socket } = response;
  // One from inside a sealed call has none.
  if (!(socket instanceof Socket)) return;
  if (socket.readableEnded) return then();
  socket.once('end', then);
  whenClosed(response, () => void socket.off('end', then));
}
