// A model runner as a test double: it answers each call with one part and holds it open until it is aborted, or
// finishes at once where the call asks for no tokens. It needs as much context as the call asks for tokens.
const send = (message) => process.send(JSON.stringify([message]));
const end = { usage: {}, finishReason: { unified: 'stop' } };
const wholes = new Set();
const finish = (id) =>
  wholes.delete(id)
    ? send({ type: 'answered', id, answer: { content: [], warnings: [], ...end } })
    : send({ type: 'part', id, part: { type: 'finish', ...end } });
let model;
const receive = ({ type, id, request, whole }) => {
  if (type === 'load') {
    const { contextTokens, limit, sequences } = request;
    model = { contextTokens, limit, sequences, trainedContextTokens: contextTokens };
    send({ type: 'loaded', model });
  }
  if (type === 'count') send({ type: 'counted', id, promptTokens: 1 });
  const needed = type === 'generate' ? request.maxOutputTokens : undefined;
  if (needed > model?.contextTokens && model.contextTokens < model.limit.tokens) {
    send({ type: 'failed', id, failure: { code: 'prompt_too_long', message: '', neededTokens: needed } });
  } else if (type === 'generate') {
    if (whole) wholes.add(id);
    else send({ type: 'part', id, part: { type: 'stream-start', warnings: [] } });
    if (request.maxOutputTokens === 0) finish(id);
  }
  if (type === 'abort') finish(id);
};
process.on('message', (messages) => messages.forEach(receive));
process.on('disconnect', () => process.exit(0));
