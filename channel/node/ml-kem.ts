/**
 * ML-KEM-768 for the gateway: encapsulation by OpenSSL where Node has it (24.7 and newer), all else by noble. The
 * gateway does nothing but encapsulate, and OpenSSL can't be given the `m` of a known answer.
 */
import type { Kem } from '../crypto.ts';
import { nobleMlKem768 } from '../noble.ts';
import { encapsulateFresh, hasOpensslMlKem768 } from './openssl-ml-kem.ts';

export function gatewayMlKem768(): Kem {
  return hasOpensslMlKem768() ? { ...nobleMlKem768, encapsulateFresh } : nobleMlKem768;
}
