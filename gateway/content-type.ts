/**
 * Which content types a route reads. A web page can send JSON as `text/plain` without its browser asking us first, so
 * whatever acts for the owner insists on the real type. Inference reads JSON under any, as its clients expect.
 */
import { RequestError } from './errors.ts';
import type { AccessClass } from './policy.ts';

const STRICT: ReadonlySet<AccessClass> = new Set(['tools', 'agents', 'dispatch', 'admin']);

/** US-ASCII is a part of UTF-8. */
const CHARSETS: ReadonlySet<string | undefined> = new Set([undefined, 'utf-8', 'utf8', 'us-ascii']);

/** @throws {RequestError} `unsupported_media_type` */
export function checkContentType(access: AccessClass, contentType: string | undefined, bodyBytes: number): void {
  if (bodyBytes === 0) return;
  if (!CHARSETS.has(charsetOf(contentType))) {
    throw new RequestError('unsupported_media_type', 'Send the body in UTF-8, as JSON is (RFC 8259, 8.1).');
  }
  if (!STRICT.has(access)) return;
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === 'application/json') return;
  throw new RequestError('unsupported_media_type', 'Send the body as JSON, with "Content-Type: application/json".');
}

function charsetOf(contentType: string | undefined): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType ?? '')?.[1]?.toLowerCase();
}
