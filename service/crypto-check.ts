/** Whether the cryptography of this machine computes right, before anybody is let in by it. */
import { hasOpensslMlKem768, isOpensslMlKemRight } from '../channel/node/openssl-ml-kem.ts';
import { platformCrypto } from '../channel/node/platform-crypto.ts';
import { findWrongPrimitive } from '../channel/primitive-test.ts';
import type { Settings } from '../core/config/settings.ts';
import { StartError } from './start.ts';

/**
 * All that this Node computes for the channel, in a few milliseconds; more, where the owner has chosen another
 * implementation. Where Node has no ML-KEM, that one comes with the program, and is tested with the first device.
 * @throws {StartError}
 */
export async function checkCrypto(choice: Settings['channel.crypto']): Promise<void> {
  if (choice === 'noble') return checkNoble();
  const isMlKemWrong = hasOpensslMlKem768() && !isOpensslMlKemRight();
  const wrong = findWrongPrimitive(platformCrypto) ?? (isMlKemWrong ? 'ML-KEM-768' : undefined);
  if (wrong === undefined) return;
  throw new StartError(
    `${wrong} computes wrong in this Node (${process.version}, OpenSSL ${process.versions.openssl}), so the service does not start. Update Node; until then another implementation can be used: "postern settings set channel.crypto noble".`,
  );
}

async function checkNoble(): Promise<void> {
  const { gatewayCrypto } = await import('../channel/node/crypto.ts');
  try {
    gatewayCrypto('noble');
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error));
  }
}
