/** What is wrong with a JSON text, in words that go after its name ("The body …") and never quote it. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

/** @param offset in bytes; none where the text ends too soon */
export function invalidJson(offset?: number): JsonError {
  return new JsonError(`is not valid JSON (${offset === undefined ? 'it ends too soon' : `at position ${offset}`})`);
}

/** More than a reader takes, whether or not it is JSON. */
export class JsonLimitError extends JsonError {}
