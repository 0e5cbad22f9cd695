/**
 * What the gateway needs of `node:http`. To import it reads every export, and one of them loads all of Node's `fetch`: a
 * sixth of the time in which the service starts.
 */
export const { createServer, IncomingMessage, METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');
