/**
 * Redeems an invite. The device's key is stored before anything is sent, and every attempt uses that one: an invite that
 * was redeemed gives its answer again to the same key, so a lost answer, a crash or a second try strands nobody.
 */
import { deriveInviteKeys } from '../../channel/invite.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { DeviceDescription } from '../../identity/pairing.ts';
import { confirmPairing, deviceOf, assertValid } from './confirmation.ts';
import type { PairedDevice } from './device.ts';
import type { PosternErrorCode } from './errors.ts';
import { PosternError } from './errors.ts';
import type { HandshakeWith } from './handshake.ts';
import { handshake } from './handshake.ts';
import { pathsTo } from './http-transport.ts';
import { describeInvite } from './invite.ts';
import type { Platform } from './platform.ts';
import { platformOf } from './platform.ts';
import type { SecretStorage } from './secret-storage.ts';
import { loadPendingKey, pendingEntry, saveDevice } from './secret-storage.ts';
import { Sessions } from './sessions.ts';
import type { Transport } from './transport.ts';

export interface PairOptions extends Partial<Platform> {
  /** What the gateway's owner sees. */
  readonly device: DeviceDescription;
  readonly storage: SecretStorage;
  readonly signal?: AbortSignal;
  /** Other ways to the gateway, tried after its addresses, and closed at the end. See `relay.ts`. */
  readonly transports?: readonly Transport[];
}

/** After that the same question is asked again, and joins the one that waits: no sign of life can come with it. */
const SILENT_FOR_MS = 60_000;
const ATTEMPTS = 6;
/** An owner may take a quarter of an hour. */
const APPROVAL_ATTEMPTS = 15;

/**
 * @param invite what was pasted or scanned, or a code that was read before
 * @returns the device, which is stored by then
 * @throws PosternError; RangeError for a description that no gateway would accept; the signal's reason
 */
export async function pair(invite: string | InviteCode, options: PairOptions): Promise<PairedDevice> {
  const platform = platformOf(options);
  const { crypto } = platform;
  const { storage } = options;
  assertValid(options.device);
  const described = describeInvite(invite, platform);
  const { inviteId, psk } = deriveInviteKeys(crypto, described.code.secret);
  const entry = pendingEntry(inviteId);
  const paths = pathsTo(described.urls, platform.fetch, options.transports);
  try {
    if (described.isOver) throw new PosternError('invite_over');
    const secretKey = await loadPendingKey(storage, entry, crypto);
    const gateway: HandshakeWith = {
      operation: 'pair-invite',
      envelope: (noise) => ({ kind: 'inviteRequest', inviteId, noise }),
      purpose: { kind: 'invite', inviteId },
      staticKey: crypto.x25519(secretKey),
      remoteStaticKey: described.code.gatewayKey,
      psk,
    };
    const sessions = new Sessions({
      platform,
      paths,
      handshake: async (shaking) => {
        const { session, transport } = await handshake(platform, paths.toTry, gateway, shaking);
        paths.worked(transport);
        return session;
      },
      callOperation: 'pair-invite',
      silentForMs: SILENT_FOR_MS,
    });
    const attempts = described.needsApproval ? APPROVAL_ATTEMPTS : ATTEMPTS;
    const grant = await confirmPairing(sessions, { ...options, attempts }).finally(() => sessions.close());
    const { gatewayKey } = described.code;
    const device = deviceOf({ gatewayKey, gatewayId: described.gatewayId, urls: described.urls, secretKey }, grant);
    await saveDevice(storage, device);
    await storage.erase(entry);
    return device;
  } catch (error) {
    if (isFinal(error)) await storage.erase(entry);
    throw error;
  } finally {
    paths.close();
  }
}

/** Nothing will come of this key. What only a hint said may be a lie, and the key that was redeemed is worth a lot. */
function isFinal(error: unknown): boolean {
  const codes: readonly PosternErrorCode[] = ['invite_used', 'invite_over', 'pairing_denied', 'approval_expired'];
  return error instanceof PosternError && codes.includes(error.code);
}
