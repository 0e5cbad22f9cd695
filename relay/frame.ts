/** The frames between a relay and those who connect to it: one for each WebSocket message. */

/** The WebSocket subprotocol. */
export const SUBPROTOCOL = 'svc-relay.v1';
