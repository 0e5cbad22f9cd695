/** What a terminal obeys, what turns the reading direction round or takes no room, line ends, halves of characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** What can't be seen, or changes how its neighbours are seen; of all spaces the one that everybody types is left. */
const UNSEEN = /["\\]|(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;
const MAX_QUOTED_CHARACTERS = 64;

/**
 * A name that somebody else chose, in quotation marks that it can't leave: what can't be seen in it is written out, and
 * what is longer than a name may be is cut.
 */
export function quoted(name: string): string {
  const characters = Array.from(name);
  const shown = characters.slice(0, MAX_QUOTED_CHARACTERS).join('').replaceAll(UNSEEN, escaped);
  return `"${shown}${characters.length > MAX_QUOTED_CHARACTERS ? '…' : ''}"`;
}

function escaped(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`;
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`;
}

/** Text from elsewhere as one line that a terminal only prints. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '\ufffd');
}
