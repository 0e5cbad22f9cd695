/**
 * The OpenAPI document: made from the route table and the very schemas that parse the bodies, so that it can't say
 * anything else than what is served. https://spec.openapis.org/oas/v3.1.1.html
 */
import * as z from 'zod';
import type { AccessClass } from './policy.ts';
import type { Route } from './route.ts';

/** What each class asks of a caller, in a sentence. `docs/access.md` has the table. */
const ACCESS: Readonly<Record<AccessClass, string>> = {
  public: 'Open to everybody; anonymous remote callers are limited.',
  channel: 'Open to everybody but calls that are sealed already; bytes, not JSON: see PROTOCOL.md.',
  health: 'Open to everybody; strangers see the status and the time only.',
  inference: 'Open on this machine; others need an access key.',
  tools: 'Open on this machine, not to foreign web pages; others need an access key.',
  agents: 'Open on this machine, not to foreign web pages; others need an access key.',
  dispatch: 'Open on this machine, not to foreign web pages; others need a paired device and the secure channel.',
  admin: 'Only on this machine, and not from web pages.',
};

export function openApiDocument(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const operations = (paths[documentedPath(route)] ??= {});
    operations[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Postern',
      version,
      description:
        'Every path is served with the prefixes /v1, /api and /v1/api and without any. Operations marked as not available answer 501. Errors come in the style of the client, and bodies may be compressed (Content-Encoding: gzip, deflate or br).',
    },
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An access key. Not needed on this machine, unless the setting access.requireKeyOnLoopback says so.',
        },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same access key.' },
      },
    },
  };
}

function documentedPath({ path, clientPrefix }: Route): string {
  return `${clientPrefix}${path}`.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{id}');
}

function operation(route: Route): object {
  const isAvailable = route.handle !== undefined;
  const parameters = [...route.path.matchAll(/:(\w+)|\*$/g)].map(([, name]) => ({
    name: name ?? 'id',
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  return {
    summary: isAvailable ? route.summary : `${route.summary} Not available in this version.`,
    description: ACCESS[route.access],
    ...(isAvailable ? {} : { 'x-postern-available': false }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route.body) }),
    ...(route.access === 'public' || route.access === 'admin'
      ? {}
      : { security: [{}, { bearer: [] }, { apiKey: [] }] }),
    responses: {
      ...(isAvailable ? { 200: { description: 'Done.' } } : { 501: { description: 'Not available in this version.' } }),
      default: { description: 'An error, in the shape of the style.' },
    },
  };
}

function requestBody(schema: z.ZodType): object {
  // What a schema can't say in JSON Schema (a transformation, say) is left open rather than left out.
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return { required: true, content: { 'application/json': { schema: json } } };
}
