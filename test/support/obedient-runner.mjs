// A model runner as a test double: it answers each call with one part and holds it open until it is aborted, or
// finishes at once where the call asks for no tokens.
const finish = (id) =>
  process.send({ type: 'parts', id, parts: [{ type: 'finish', usage: {}, finishReason: { unified: 'stop' } }] });
process.on('message', ({ type, id, request }) => {
  if (type === 'load') {
    const { contextTokens, sequences } = request;
    process.send({ type: 'loaded', model: { contextTokens, sequences, trainedContextTokens: contextTokens } });
  }
  if (type === 'count') process.send({ type: 'counted', id, promptTokens: 1 });
  if (type === 'generate') {
    process.send({ type: 'parts', id, parts: [{ type: 'stream-start', warnings: [] }] });
    if (request.maxOutputTokens === 0) finish(id);
  }
  if (type === 'abort') finish(id);
});
process.on('disconnect', () => process.exit(0));
