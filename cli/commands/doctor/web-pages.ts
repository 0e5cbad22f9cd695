/** Which web pages may call. */
import type { Check } from './check.ts';

export const webPages: Check = {
  name: 'web pages',
  run({ settings }) {
    const origins = settings['server.allowedOrigins'];
    if (origins.includes('*')) {
      return {
        state: 'warning',
        message: 'every web page in a browser on this machine may use the models, and nothing else',
        remedy: "To close that: postern settings set server.allowedOrigins '[]'",
      };
    }
    return { state: 'ok', message: origins.length === 0 ? 'none may call' : `only ${origins.join(', ')} may call` };
  },
};
