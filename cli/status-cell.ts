import type { Cell } from './table.ts';

/** How a key or a device is, `active` or not any more, as a screen shows it. */
export function statusCell(status: string): Cell {
  return { text: status, style: status === 'active' ? 'good' : 'faint' };
}
