// A model runner that hangs: it loads, counts, begins to answer, and hears nothing after that.
process.on('message', ({ type, id }) => {
  if (type === 'load')
    process.send({ type: 'loaded', model: { contextTokens: 10, sequences: 4, trainedContextTokens: 10 } });
  if (type === 'count') process.send({ type: 'counted', id, promptTokens: 1 });
  if (type === 'generate') process.send({ type: 'parts', id, parts: [{ type: 'stream-start', warnings: [] }] });
});
