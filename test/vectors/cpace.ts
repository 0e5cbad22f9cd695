/** Runs the vectors of the CPace draft: shares, the shared key, and which shares are refused. */
import { startCpace } from '../../channel/cpace.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { scripted } from '../channel/scripted-crypto.ts';
import type { Outcome } from './outcome.ts';
import { fromHex, isHex, isRefused, runRows } from './outcome.ts';

interface CpaceFile {
  readonly G_Ristretto255: Readonly<Record<string, string>>;
  readonly G_Ristretto255_points: Readonly<Record<'Invalid Y1' | 'Invalid Y2', string>>;
}

export function runCpace(crypto: Crypto, content: unknown): Outcome {
  const { G_Ristretto255: vector, G_Ristretto255_points: points } = content as CpaceFile;
  const field = (name: string): Uint8Array => fromHex(vector[name]!);
  /** The draw is the scalar of the vector, little-endian, so that reducing it changes nothing. */
  const side = (role: 'initiator' | 'responder', letter: 'a' | 'b') => {
    const draw = new Uint8Array(64);
    draw.set(field(`y${letter}`));
    return startCpace(scripted(crypto, [draw]), {
      role,
      password: field('PRS'),
      channelId: field('CI'),
      sessionId: field('sid'),
      associatedData: field(`AD${letter}`),
    });
  };
  const sharedKey = (role: 'initiator' | 'responder'): Uint8Array =>
    role === 'initiator'
      ? side(role, 'a').finish(field('Yb'), field('ADb'))
      : side(role, 'b').finish(field('Ya'), field('ADa'));
  return runRows([
    { name: 'Ya', check: () => isHex(side('initiator', 'a').share, vector['Ya']!) },
    { name: 'Yb', check: () => isHex(side('responder', 'b').share, vector['Yb']!) },
    { name: 'ISK_IR, initiator', check: () => isHex(sharedKey('initiator'), vector['ISK_IR']!) },
    { name: 'ISK_IR, responder', check: () => isHex(sharedKey('responder'), vector['ISK_IR']!) },
    { name: 'Invalid Y1', check: () => isRefused(() => side('initiator', 'a').finish(fromHex(points['Invalid Y1']))) },
    { name: 'Invalid Y2', check: () => isRefused(() => side('initiator', 'a').finish(fromHex(points['Invalid Y2']))) },
  ]);
}
