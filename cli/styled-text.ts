/** Text with a meaning that a screen may show in colour. What stands in a span is text alone and can command nothing. */

export type Style = 'heading' | 'good' | 'warning' | 'bad' | 'faint';

export interface Span {
  readonly text: string;
  readonly style: Style;
}

export type StyledText = string | readonly (string | Span)[];
