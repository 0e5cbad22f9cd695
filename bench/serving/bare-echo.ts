/** Fastify that sends back the JSON it was sent, and nothing else. */
import Fastify from 'fastify';

const app = Fastify();
app.post('/echo', (request) => request.body);
await app.listen({ port: 0, host: '127.0.0.1' });
const address = app.server.address();
process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
process.on('disconnect', () => process.exit(0));
