/**
 * The handshake patterns of Noise rev 34 §7.4, §7.5, appendix §18.1 and the one hybrid pattern with published vectors, in
 * the notation of the specification. The product knows two patterns; these prove the code that runs them.
 */
import type { HandshakePattern, Token } from '../../channel/noise/pattern.ts';

/** Known static keys before the colon (i, r), then the messages. */
const PATTERNS: Readonly<Record<string, string>> = {
  N: 'r: e es',
  K: 'i r: e es ss',
  X: 'r: e es s ss',
  NN: ': e / e ee',
  NK: 'r: e es / e ee',
  NX: ': e / e ee s es',
  XN: ': e / e ee / s se',
  XK: 'r: e es / e ee / s se',
  XX: ': e / e ee s es / s se',
  KN: 'i: e / e ee se',
  KK: 'i r: e es ss / e ee se',
  KX: 'i: e / e ee se s es',
  IN: ': e s / e ee se',
  IK: 'r: e es s ss / e ee se',
  IX: ': e s / e ee se s es',
  NK1: 'r: e / e ee es',
  NX1: ': e / e ee s / es',
  X1N: ': e / e ee / s / se',
  X1K: 'r: e es / e ee / s / se',
  XK1: 'r: e / e ee es / s se',
  X1K1: 'r: e / e ee es / s / se',
  X1X: ': e / e ee s es / s / se',
  XX1: ': e / e ee s / es s se',
  X1X1: ': e / e ee s / es s / se',
  K1N: 'i: e / e ee / se',
  K1K: 'i r: e es / e ee / se',
  KK1: 'i r: e / e ee se es',
  K1K1: 'i r: e / e ee es / se',
  K1X: 'i: e / e ee s es / se',
  KX1: 'i: e / e ee se s / es',
  K1X1: 'i: e / e ee s / se es',
  I1N: ': e s / e ee / se',
  I1K: 'r: e es s / e ee / se',
  IK1: 'r: e s / e ee se es',
  I1K1: 'r: e s / e ee es / se',
  I1X: ': e s / e ee s es / se',
  IX1: ': e s / e ee se s / es',
  I1X1: ': e s / e ee s / se es',
  XXhfs: ': e e1 / e ee ekem1 s es / s se',
};

/** The pattern that a protocol name begins with, `Noise_IKpsk2_…`; a psk modifier is applied as §9.4 says. */
export function patternOf(protocolName: string): HandshakePattern {
  const full = protocolName.split('_')[1] ?? '';
  const [, base = '', psk] = /^(.+?)(?:psk(\d))?$/u.exec(full) ?? [];
  const [known, messages] = (PATTERNS[base] ?? '').split(':');
  if (known === undefined || messages === undefined) throw new RangeError(`unknown pattern ${full}`);
  const tokens = messages.split('/').map((message) => message.trim().split(' ') as Token[]);
  return {
    protocolName,
    knownStatic: { initiator: known.includes('i'), responder: known.includes('r') },
    messages: psk === undefined ? tokens : withPsk(tokens, Number(psk)),
  };
}

/** §9.4: psk0 stands at the beginning of the first message, pskN at the end of the Nth. */
function withPsk(messages: readonly (readonly Token[])[], position: number): readonly (readonly Token[])[] {
  return messages.map((tokens, index): readonly Token[] => {
    if (position === 0 && index === 0) return ['psk', ...tokens];
    return index === position - 1 ? [...tokens, 'psk'] : tokens;
  });
}
