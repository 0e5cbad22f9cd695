import { nearNames } from '../core/near-names.ts';

/** @returns ` Did you mean "status"?`, to follow a refusal, or nothing where no name is near */
export function didYouMean(typed: string, known: Iterable<string>): string {
  const [near] = nearNames(typed, known, 1);
  return near === undefined ? '' : ` Did you mean "${near}"?`;
}
