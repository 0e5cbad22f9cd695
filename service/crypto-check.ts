/** Self-tests of this machine's cryptography, before it decides who is let in. */
import { hasOpensslMlKem768, isOpensslMlKemRight } from '../channel/node/openssl-ml-kem.ts';
import { platformCrypto } from '../channel/node/platform-crypto.ts';
import { findWrongPrimitive } from '../channel/primitive-test.ts';
import type { ChannelSettings } from '../gateway/sealed/settings.ts';
import { StartError } from './start.ts';

/**
 * Tests all that Node computes for the channel, which takes a few milliseconds; or all of the JavaScript implementation,
 * where the owner has chosen that one, which takes longer. Where Node has no ML-KEM, the JavaScript one is used, and
 * tested when the first device comes.
 * @throws {StartError}
 */
export async function checkCrypto(choice: ChannelSettings['channel.crypto']): Promise<void> {
  if (choice === 'noble') return checkNoble();
  const isMlKemWrong = hasOpensslMlKem768() && !isOpensslMlKemRight();
  const wrong = findWrongPrimitive(platformCrypto) ?? (isMlKemWrong ? 'ML-KEM-768' : undefined);
  if (wrong === undefined) return;
  throw new StartError(
    `${wrong} fails its self-test in this Node (${process.version}, OpenSSL ${process.versions.openssl}), so the service does not start. Update Node, or use another implementation until then: "postern settings set channel.crypto noble".`,
  );
}

async function checkNoble(): Promise<void> {
  const { gatewayCrypto, SelfTestError } = await import('../channel/node/crypto.ts');
  try {
    gatewayCrypto('noble');
  } catch (error) {
    if (!(error instanceof SelfTestError)) throw error;
    throw new StartError(
      `${error.message} in the JavaScript that "channel.crypto" chooses, so the service does not start. Install Postern ` +
        `and Node (${process.version}) again, or use Node's own: "postern settings set channel.crypto node".`,
    );
  }
}
