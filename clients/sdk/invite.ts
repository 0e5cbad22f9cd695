/** An invite as a person is to see it before anything is sent to anybody. */
import { formatGatewayId, gatewayIdOf } from '../../channel/gateway-id.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import { findInviteCode } from '../../identity/invite-code.ts';
import { PosternError } from './errors.ts';
import { httpUrls } from './http-transport.ts';
import type { Platform } from './platform.ts';
import { platformOf } from './platform.ts';

export interface InviteDescription {
  readonly code: InviteCode;
  /** To be compared with what the gateway shows: eight groups of four hexadecimal digits. */
  readonly gatewayId: string;
  /** What pairing connects to, in this order. */
  readonly urls: readonly string[];
  readonly relayOrigin?: string;
  /** Unix time in milliseconds. */
  readonly expiresAtMs: number;
  readonly isOver: boolean;
  /** The owner of the gateway has to say yes, so pairing may take minutes. */
  readonly needsApproval: boolean;
  readonly isForOneAgent: boolean;
}

/** @param invite what was pasted or scanned, or a code that was read before. @throws PosternError `invite_unreadable` */
export function describeInvite(invite: string | InviteCode, options: Partial<Platform> = {}): InviteDescription {
  const { crypto, now } = platformOf(options);
  const code = typeof invite === 'string' ? findInviteCode(invite) : invite;
  if (code === undefined) throw new PosternError('invite_unreadable');
  const expiresAtMs = code.expiresAtMinute * 60_000;
  return {
    code,
    gatewayId: formatGatewayId(gatewayIdOf(crypto, code.gatewayKey)),
    urls: httpUrls(code.urls),
    ...(code.relay === undefined ? {} : { relayOrigin: code.relay.origin }),
    expiresAtMs,
    isOver: now() >= expiresAtMs,
    needsApproval: code.needsApproval,
    isForOneAgent: code.isForOneAgent,
  };
}
