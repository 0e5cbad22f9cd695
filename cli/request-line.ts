/** A request of the log as a line for people. */
import type { LoggedRequest } from '../gateway/request-log/request-log-reader.ts';
import { localTime } from './local-time.ts';
import type { StyledText } from './styled-text.ts';

/** What stands above lines of requests. */
export const REQUEST_HEADS: StyledText = [
  {
    text: 'TIME                 HTTP METHOD      TOOK  PATH                      WHAT',
    style: 'heading',
  },
];

/** Columns first, then what there is to say of this one. */
export function requestLine(request: LoggedRequest): StyledText {
  const { status } = request;
  const rest = [request.method.padEnd(6), formatDuration(request.duration_ms).padStart(8), request.path.padEnd(24)];
  const text = String(status).padEnd(3);
  const shown = status < 400 ? text : { text, style: status < 500 ? ('warning' as const) : ('bad' as const) };
  return [`${localTime(request.time)}  `, shown, `  ${[...rest, ...details(request)].join('  ').trimEnd()}`];
}

function details(request: LoggedRequest): string[] {
  const { input_tokens: input, cached_tokens: cached, output_tokens: output, tokens_per_second: speed } = request;
  return [
    modelText(request),
    input === null ? null : `${input}${cached === null || cached === 0 ? '' : ` (${cached} cached)`} in`,
    output === null ? null : `${output} out`,
    speed === null ? null : `${speed.toFixed(1)} tok/s`,
    request.finish_reason,
    request.error_code,
    request.error_message,
    request.source === 'http' ? null : request.source,
    request.caller === 'loopback' ? null : request.caller,
  ].filter((detail) => detail !== null);
}

/** What answered; after what was asked for, where that is another name. */
function modelText({ model, requested_model: asked }: LoggedRequest): string | null {
  return asked === null || asked === model ? model : [asked, model ?? '?'].join(' = ');
}

/** `3.4 ms`, `120 ms`, `2.5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}
