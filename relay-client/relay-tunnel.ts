/** The gateway's way to a relay: dialled from here, kept open, and never asked about what it carries. */
import { SUBPROTOCOL } from '../relay/wire/frame.ts';

export const TUNNEL_SUBPROTOCOL = SUBPROTOCOL;
