/** Why a file could not be fetched, in one sentence that says what to do; it never holds a token or a URL's query. */
export const DOWNLOAD_ERROR_CODES = [
  /** What was asked for is no reference to a model, or leads somewhere that is not allowed. */
  'bad_reference',
  /** A variable of the environment can't be used. */
  'bad_environment',
  /** The server can't be reached at all. */
  'unreachable',
  /** The server wants to know who asks, or does not like the answer. */
  'forbidden',
  'not_found',
  /** The connection broke, went silent, or the server failed; the same request may succeed when repeated. */
  'interrupted',
  /** The server answers what makes no sense here, and would again. */
  'bad_answer',
  /** The bytes that came are not those that were promised. */
  'wrong_content',
  /** Another process is fetching the same file. */
  'busy',
  /** Another file has its name. */
  'occupied',
  'no_space',
  /** The user asked to stop. */
  'stopped',
] as const;

export type DownloadErrorCode = (typeof DOWNLOAD_ERROR_CODES)[number];

export class DownloadError extends Error {
  override readonly name = 'DownloadError';
  readonly code: DownloadErrorCode;

  constructor(code: DownloadErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}
