/** Calls `run` after `delayMs`, unless the function that it returns is called before. Passed in, as the clock is. */
export type SetTimer = (delayMs: number, run: () => void) => () => void;
