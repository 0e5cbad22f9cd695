// A model runner that hangs: it loads, counts (but a call of no tokens), begins to answer, and hears nothing after that.
const send = (message) => process.send(JSON.stringify([message]));
const receive = ({ type, id, request }) => {
  if (type === 'load')
    send({
      type: 'loaded',
      model: { contextTokens: 10, limit: { tokens: 10, by: 'setting' }, sequences: 4, trainedContextTokens: 10 },
    });
  if (type === 'count' && request.maxOutputTokens !== 0) send({ type: 'counted', id, promptTokens: 1 });
  if (type === 'generate') send({ type: 'part', id, part: { type: 'stream-start', warnings: [] } });
};
process.on('message', (messages) => messages.forEach(receive));
