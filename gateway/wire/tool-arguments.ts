/** The arguments of a tool call that comes back as part of a conversation. */

/** Arguments that an earlier answer got wrong stay the text they were. */
export function parseToolArguments(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text);
  } catch {
    return text;
  }
}
