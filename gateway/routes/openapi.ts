/** `GET /openapi.json`: what this server serves, for programs and people. */
import { NO_BODY_BYTES } from '../bounds.ts';
import { openApiDocument } from '../openapi.ts';
import type { Route, Services } from '../route.ts';

/** @param table asked for when the first client comes, since this route stands in the table itself */
export function openApi(table: () => readonly Route[]): Route<Pick<Services, 'control'>> {
  let document: object | undefined;
  return {
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    maxBodyBytes: NO_BODY_BYTES,
    clientPrefix: '',
    summary: 'This document.',
    handle: (_request, { control }) => {
      document ??= openApiDocument(table(), control.version);
      return { body: document };
    },
  };
}
