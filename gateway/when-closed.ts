/**
 * The end of a response, for all that counts or works for it: the answer went out, or its connection is gone. A response
 * says so only once, and its client may have left before anybody listened.
 */
import type { ServerResponse } from 'node:http';

/** Calls `then` once, when nothing more of this response can be sent; at once where that is so by now. */
export function whenClosed(response: ServerResponse, then: () => void): void {
  if (response.destroyed) then();
  else response.once('close', then);
}
