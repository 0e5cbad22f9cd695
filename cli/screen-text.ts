/** Styled text as bytes for a stream: colours where it has them, and nothing that commands a terminal. */
import { styleText } from 'node:util';
import type { Style, StyledText } from './styled-text.ts';

const FORMATS = {
  heading: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  faint: 'dim',
} as const satisfies Record<Style, string>;

/**
 * Colours follow the stream and the environment: none in a pipe or a file, none with `NO_COLOR`, always with
 * `FORCE_COLOR`.
 * @param keepsControls for a program that reads, and is to get every byte
 */
export function screenText(text: StyledText, stream: NodeJS.WriteStream, keepsControls = false): string {
  const clean = keepsControls ? (part: string): string => part : withoutControls;
  if (typeof text === 'string') return clean(text);
  return text
    .map((part) =>
      typeof part === 'string' ? clean(part) : styleText(FORMATS[part.style], clean(part.text), { stream }),
    )
    .join('');
}

/** Names of files, what stands in them and what a model says come from anywhere: none of it may command the terminal. */
export function withoutControls(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}
