/** What a request inside the channel may say and hold: the gateway keeps to it, and devices send nothing beyond it. */

/** Credentials are not among them: the session is the device's. */
export const REQUEST_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'content-type',
  'content-encoding',
  'range',
  'last-event-id',
  'idempotency-key',
  'x-service-agent-id',
  'anthropic-version',
  'anthropic-beta',
  'mcp-session-id',
  'mcp-protocol-version',
]);

/** What of a sealed body (32 MiB) is left when the channel has taken its part. */
export const MAX_SEALED_BODY_BYTES = 32 * 1024 * 1024 - 128 * 1024;
