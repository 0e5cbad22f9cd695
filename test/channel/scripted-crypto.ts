import { withRandomBytes, type Crypto } from '../../channel/crypto.ts';

/** `crypto` with a script for a generator: each draw takes the next bytes and must ask for as many as they are. */
export function scripted(crypto: Crypto, draws: readonly Uint8Array[]): Crypto {
  const left = [...draws];
  return withRandomBytes(crypto, (length) => {
    const next = left.shift();
    if (next?.length !== length) throw new RangeError(`the script has no ${length} random bytes here`);
    return new Uint8Array(next);
  });
}
