/**
 * The channel's cryptography in a running service. All of it is tested when the first device comes; where that fails no
 * device is let in until the service is started again, and everything else goes on.
 */
import type { Crypto } from '../channel/crypto.ts';
import { RequestError } from '../gateway/errors.ts';

export interface ChannelCrypto {
  /**
   * @param tested gives it, once it has passed its self-test; called once, since that takes long
   * @throws {RequestError} `channel_unavailable` where it has not
   */
  get(tested: () => Crypto): Crypto;
  /** When it failed, in milliseconds since 1970. */
  failedAtMs(): number | undefined;
}

interface ChannelCryptoOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly say: (words: string) => void;
}

export function createChannelCrypto({ now, say }: ChannelCryptoOptions): ChannelCrypto {
  let crypto: Crypto | undefined;
  let failure: { readonly atMs: number; readonly cause: unknown } | undefined;
  const test = (tested: () => Crypto): Crypto | undefined => {
    try {
      return tested();
    } catch (cause) {
      // By its name: its class would load all of the channel before anybody needs it.
      if (!(cause instanceof Error) || cause.name !== 'SelfTestError') throw cause;
      failure = { atMs: now(), cause };
      say(
        `postern: ${cause.message}, so no paired device is let in. Programs on this machine are served as before. ` +
          'Install Postern and Node again, and restart the service.',
      );
      return undefined;
    }
  };
  return {
    get(tested) {
      if (failure === undefined) crypto ??= test(tested);
      if (crypto === undefined) throw unavailable(failure?.cause);
      return crypto;
    },
    failedAtMs: () => failure?.atMs,
  };
}

function unavailable(cause: unknown): RequestError {
  return new RequestError(
    'channel_unavailable',
    'Devices cannot be let in at the moment. The log of the service says why; its owner can put that right.',
    { cause },
  );
}
