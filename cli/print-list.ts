/** How every list is told: as JSON for programs, else as a table, with a hint where there is nothing in it. */
import { table, type Cell } from './table.ts';
import type { Terminal } from './command.ts';

interface ListOptions<Item> {
  readonly asJson: boolean;
  readonly heads: readonly string[];
  readonly cells: (item: Item) => readonly Cell[];
  /** What a program is given of each item; by default the item itself. */
  readonly json?: (item: Item) => unknown;
  /** That there is none, and how one is made. */
  readonly hint?: string;
}

export function printList<Item>(
  terminal: Pick<Terminal, 'print' | 'say'>,
  items: readonly Item[],
  { asJson, heads, cells, json = (item) => item, hint }: ListOptions<Item>,
): void {
  if (asJson) terminal.print(JSON.stringify(items.map(json)));
  else if (items.length > 0 || hint === undefined)
    for (const line of table(heads, items.map(cells))) terminal.print(line);
  if (items.length === 0 && hint !== undefined) terminal.say(hint);
}
