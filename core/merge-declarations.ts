/** What each room declares for itself, as one table. Its type follows from the parts. */

type Names<Parts extends readonly object[], Index> = {
  [Other in keyof Parts]: Other extends Index ? never : keyof Parts[Other];
}[number];

/** The parts themselves, where no two have a name in common. */
type Disjoint<Parts extends readonly object[]> = {
  [Index in keyof Parts]: keyof Parts[Index] & Names<Parts, Index> extends never
    ? Parts[Index]
    : { readonly declaredTwice: keyof Parts[Index] & Names<Parts, Index> };
};

type Merged<Parts extends readonly object[]> = Parts extends readonly [infer First, ...infer Rest extends object[]]
  ? First & Merged<Rest>
  : unknown;

/** In the order of the parts. A name that two of them declare does not compile. */
export function mergeDeclarations<Parts extends object[]>(...parts: Parts & Disjoint<Parts>): Merged<Parts>;
export function mergeDeclarations(...parts: readonly object[]): object {
  return parts.reduce((all, part) => ({ ...all, ...part }), {});
}
