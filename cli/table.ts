/** Rows as aligned columns under their heads. */
import { printable } from '../core/printable.ts';
import type { Span, StyledText } from './styled-text.ts';

export type Cell = string | Span;

const GAP = '  ';

/** What a reader takes for one character. */
const segmenter = new Intl.Segmenter();

/** @returns the heads and the rows, line by line */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): readonly StyledText[] {
  const lines = [heads.map((text): Cell => ({ text, style: 'heading' })), ...rows.map((cells) => cells.map(shown))];
  const widths = heads.map((_, column) => Math.max(...lines.map((cells) => widthOf(cells[column]))));
  return lines.map((cells) => lineOf(cells, widths));
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

/** Names and values come from files and from other machines. */
function shown(cell: Cell): Cell {
  return typeof cell === 'string' ? printable(cell) : { ...cell, text: printable(cell.text) };
}

function widthOf(cell: Cell = ''): number {
  return [...segmenter.segment(textOf(cell))].length;
}
