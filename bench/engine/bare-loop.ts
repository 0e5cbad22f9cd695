/**
 * The engine with nothing around it, as a process of its own: loads a model, then answers each message by generating
 * at most that many tokens greedily, and tells how long each took after the first.
 */
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';

const [path = '', contextTokens = '2048'] = process.argv.slice(2);

const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  maxThreads: 1,
  logLevel: LlamaLogLevel.disabled,
});
const model = await llama.loadModel({ modelPath: path });
const context = await model.createContext({ sequences: 1, contextSize: Number(contextTokens), threads: 1 });
const sequence = context.getSequence();

process.on('message', ({ prompt, tokens }: { prompt: string; tokens: number }) => {
  void generate(prompt, tokens).then((result) => process.send?.(result));
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });

async function generate(prompt: string, tokens: number): Promise<{ readonly tokenMs: number }> {
  await sequence.clearHistory();
  let text = '';
  let count = 0;
  let [firstMs, lastMs] = [0, 0];
  for await (const token of sequence.evaluate(model.tokenize(prompt, true), { temperature: 0 })) {
    text += model.detokenize([token]);
    count += 1;
    lastMs = performance.now();
    if (count === 1) firstMs = lastMs;
    if (count === tokens) break;
  }
  if (text === '') throw new Error('the model said nothing');
  return { tokenMs: (lastMs - firstMs) / (count - 1) };
}
