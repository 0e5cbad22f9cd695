/**
 * The gateway's provider: node:crypto for all that it has, ML-KEM-768 among it where Node has that. It is not used before
 * `gatewayCrypto` has seen it give the known answers.
 */
import type { Crypto } from '../crypto.ts';
import { nobleCrypto } from '../noble.ts';
import { findWrongPrimitive } from '../primitive-test.ts';
import { failedKnownAnswer } from '../self-test.ts';
import { gatewayMlKem768 } from './ml-kem.ts';
import { platformCrypto, randomBytes } from './platform-crypto.ts';

export type CryptoChoice = 'node' | 'noble';

export class SelfTestError extends Error {
  override readonly name = 'SelfTestError';
  /** What gave a wrong answer. */
  readonly failed: string;

  constructor(failed: string) {
    super(`${failed} fails its self-test`);
    this.failed = failed;
  }
}

/**
 * The provider of the owner's choice, once it has passed the self-test.
 * @throws {SelfTestError} if it has not. There is no falling back: a library that computes something else than it did when it
 * was tested is a reason to stop and look, not to go on with another.
 */
export function gatewayCrypto(choice: CryptoChoice, provider = PROVIDERS[choice]()): Crypto {
  const failed = findWrongPrimitive(provider) ?? failedKnownAnswer(provider);
  if (failed !== undefined) throw new SelfTestError(failed);
  return provider;
}

const PROVIDERS: Readonly<Record<CryptoChoice, () => Crypto>> = {
  node: () => ({ ...platformCrypto, mlKem768: gatewayMlKem768() }),
  noble: () => nobleCrypto(randomBytes),
};
