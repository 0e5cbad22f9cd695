/** What a terminal obeys, what turns the reading direction round, halves of characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Text from elsewhere as one line that a terminal only prints. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '\ufffd');
}
