/** `/v1`, `/api` and `/v1/api` in front of any path mean the same: clients look for it under one or another. */
const ALIAS = /^\/(?:v1\/api|v1|api)(?=\/|$|\?)/;

/** `/v1/api/chat/completions?x` is `/chat/completions?x`. The prefix is taken off once. */
export function withoutAlias(url: string): string {
  const path = url.replace(ALIAS, '');
  return path.startsWith('/') ? path : `/${path}`;
}
