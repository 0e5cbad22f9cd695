/** What a scripted model answers. */
export interface Script {
  /** Part of what the user asks for: other requests are not answered from the script. */
  readonly task: string;
  /** What to look for in the results of tools: a regular expression. A step has it as `{found}`. */
  readonly find: string;
  /** The answers, in turn. */
  readonly steps: readonly Step[];
}

export type Step = { readonly text: string } | { readonly tool: string; readonly input: object };

/** The environment variable that tells a scripted runner its script, as JSON. */
export const SCRIPT_VARIABLE = 'SCRIPTED_MODEL';
