/** Rows as aligned columns under their heads. */
import type { Span, StyledText } from './styled-text.ts';

export type Cell = string | Span;

const GAP = '  ';

/** What a reader takes for one character. */
const segmenter = new Intl.Segmenter();

/** @returns the heads and the rows, line by line */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): readonly StyledText[] {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((cells) => widthOf(cells[column]))));
  return [heads.map((text): Cell => ({ text, style: 'heading' })), ...rows].map((cells) => lineOf(cells, widths));
}

function lineOf(cells: readonly Cell[], widths: readonly number[]): StyledText {
  const last = cells.findLastIndex((cell) => textOf(cell) !== '');
  return cells.slice(0, last + 1).flatMap((cell, column) => {
    const blanks = column === last ? '' : ' '.repeat((widths[column] ?? 0) - widthOf(cell)) + GAP;
    return [cell, blanks];
  });
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

function widthOf(cell: Cell = ''): number {
  return [...segmenter.segment(textOf(cell))].length;
}
