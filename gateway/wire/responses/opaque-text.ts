/**
 * Open Responses, `encrypted_content`: text that a client keeps and sends back as it is. Pure.
 *
 * The standard leaves its form to whoever makes it. Ours is no secret, since whoever holds it holds the conversation that
 * it is about: the text in base64url, so that nothing has to be kept here to read it again.
 */

/** Tells ours from another service's, which nobody here can read. */
const PREFIX = 'postern1.';

export function encodeOpaqueText(text: string): string {
  return PREFIX + Buffer.from(text).toString('base64url');
}

/** @returns undefined for what was not made here */
export function decodeOpaqueText(content: string): string | undefined {
  return content.startsWith(PREFIX) ? Buffer.from(content.slice(PREFIX.length), 'base64url').toString() : undefined;
}
