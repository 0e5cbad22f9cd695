/** All wire styles, and which of them a client speaks, as far as its request shows. */
import { withoutAlias } from '../path-alias.ts';
import { anthropic } from './anthropic/dialect.ts';
import type { Dialect } from './dialect.ts';
import { ollama } from './ollama/dialect.ts';
import { openai, openaiCompletions } from './openai/dialect.ts';
import { openResponses } from './responses/dialect.ts';

export const DIALECTS: readonly Dialect[] = [openai, openaiCompletions, openResponses, anthropic, ollama];

/** What of a request shows its client's style. */
export interface StyleHints {
  /** As the client wrote it. */
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/**
 * The style whose address it is; where several share one, or there is nothing, that of the client's header, and then
 * that of its prefix. OpenAI's where nothing says otherwise.
 */
export function dialectOf({ url, headers }: StyleHints): Dialect {
  const path = url.replace(/[?#].*$/s, '');
  const inner = withoutAlias(path).replace(/(?<=.)\/$/, '');
  return (
    DIALECTS.find(({ paths }) => paths.some((pattern) => matches(inner, pattern))) ??
    DIALECTS.find(({ clientHeader }) => clientHeader !== undefined && headers[clientHeader] !== undefined) ??
    DIALECTS.find(({ prefix }) => prefix !== undefined && hasPrefix(path, prefix)) ??
    openai
  );
}

function matches(path: string, pattern: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

/** Behind `/v1` as well, which every prefix may stand behind. */
function hasPrefix(path: string, prefix: string): boolean {
  return `${path.replace(/^\/v1(?=\/)/, '')}/`.startsWith(`${prefix}/`);
}
