/**
 * Which content types a route reads. A web page can send JSON as `text/plain` without its browser asking us first, so
 * whatever acts for the owner insists on the real type. Inference reads JSON under any, as its clients expect.
 */
import { RequestError } from './errors.ts';
import type { AccessClass } from './policy.ts';

const STRICT: ReadonlySet<AccessClass> = new Set(['tools', 'agents', 'dispatch', 'admin']);

/** @throws {RequestError} `unsupported_media_type` */
export function checkContentType(access: AccessClass, contentType: string | undefined, bodyBytes: number): void {
  if (bodyBytes === 0 || !STRICT.has(access)) return;
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === 'application/json') return;
  throw new RequestError('unsupported_media_type', 'Send the body as JSON, with "Content-Type: application/json".');
}
