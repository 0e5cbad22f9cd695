/**
 * What of a request was let pass without having any effect, named for its client in a response header: clients send
 * what their own vendor's servers understand, and refusing all of that would shut them out.
 */

import type { ModelWarnings } from '../../core/inference/model-port.ts';

export const IGNORED_HEADER = 'x-postern-ignored';

/** Names come from the client, and a header is no place for all that one could send. */
const MAX_NAMES = 32;
const MAX_NAME_LENGTH = 64;

/** @param ignored names such as `tools.web_search`; repeated ones count once. No header where there is none. */
export function ignoredHeaders(ignored: Iterable<string>): Readonly<Record<string, string>> {
  const names = new Set([...ignored].map((name) => name.slice(0, MAX_NAME_LENGTH).replace(/[^\w.-]/g, '_')));
  return names.size === 0 ? {} : { [IGNORED_HEADER]: [...names].slice(0, MAX_NAMES).join(', ') };
}

/** @returns the headers with what the model says that it won't hold to, beside what they name already */
export function withWarnings(
  headers: Readonly<Record<string, string>>,
  warnings: ModelWarnings = [],
): Readonly<Record<string, string>> {
  const features = warnings.flatMap((warning) => (warning.type === 'unsupported' ? [warning.feature] : []));
  const named = headers[IGNORED_HEADER]?.split(', ') ?? [];
  return { ...headers, ...ignoredHeaders([...named, ...features]) };
}

/** `web_search_20250305` is `web_search`: vendors date the versions of their hosted tools. */
export function withoutVersion(toolType: string): string {
  return toolType.slice(0, MAX_NAME_LENGTH).replace(/_\d{8}$/, '');
}
