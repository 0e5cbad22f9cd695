/** How a refusal of policy looks from outside: its status, its words and its headers. */
import type { AccessClass, Refusal } from './policy.ts';

export const refusalErrors = {
  unauthenticated: 401,
  agent_not_found: 404,
  agent_scope_denied: 403,
  cross_site: 403,
  forbidden: 403,
  foreign_host: 403,
  secure_channel_required: 426,
} as const satisfies Readonly<Record<Refusal, number>>;

const REFUSAL_MESSAGES: Readonly<Record<Exclude<Refusal, 'forbidden'>, string>> = {
  unauthenticated:
    'This needs a valid access key: send it as "Authorization: Bearer svc-v1…" or as "x-api-key". Only programs on the same machine that run as the same user as the service need none.',
  foreign_host:
    'The name in the Host header may belong to another machine. Call this one 127.0.0.1 or localhost, or add the name to the setting server.hostnames.',
  cross_site:
    'A web page may not call this. Add its origin to the setting server.allowedOrigins, or call from outside a browser.',
  agent_not_found: 'There is no such agent. The built-in one is called "default".',
  agent_scope_denied: 'The credential is for another agent.',
  secure_channel_required: 'From another machine this is only possible through the secure channel of a paired device.',
};

/** What a route's class is closed to differs, and so does what to do. */
const FORBIDDEN_MESSAGES: Readonly<Partial<Record<AccessClass, string>>> = {
  channel: 'This is how a device gets in, and a call of a paired device is in already: call the route that is wanted.',
  dispatch:
    'The built-in agent can only be reached on the machine that the service runs on, by a program of the same user. Name another agent.',
  admin:
    'This can only be called on the machine that the service runs on, by a program of the same user, and not with an access key.',
};
const FORBIDDEN = 'This caller may not call this.';

/** RFC 9110 §11.6.1 and §15.5.22: these two statuses say in a header what would be accepted. */
const REFUSAL_HEADERS: Readonly<Partial<Record<Refusal, Readonly<Record<string, string>>>>> = {
  unauthenticated: { 'www-authenticate': 'Bearer' },
  secure_channel_required: { upgrade: 'svc-secure-v1' },
};

/** @param access of the route that was asked for */
export function refusalMessage(refusal: Refusal, access: AccessClass): string {
  return refusal === 'forbidden' ? (FORBIDDEN_MESSAGES[access] ?? FORBIDDEN) : REFUSAL_MESSAGES[refusal];
}

export function refusalHeaders(refusal: Refusal): Readonly<Record<string, string>> {
  return REFUSAL_HEADERS[refusal] ?? {};
}
