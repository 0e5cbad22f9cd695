/** The largest bodies, in bytes; the contract's Limits. */

/** Every public route that has no smaller bound of its own. */
export const PUBLIC_BODY_BYTES = 32 * 1024 * 1024;
export const PAIRING_BODY_BYTES = 64 * 1024;
/** One handshake message; `channel` says how long those are. */
export const SESSION_BODY_BYTES = 8 * 1024;
export const CONFIG_BODY_BYTES = 512 * 1024;
/** For routes that read no body, so that nobody can make them hold one. */
export const NO_BODY_BYTES = 64 * 1024;
