/** The engine with nothing around it, in this process: the built-in model's answer to one message, of a few tokens. */
import { getLlama, LlamaChat, LlamaLogLevel, resolveChatWrapper } from 'node-llama-cpp';

/** @returns what answers a message with at most that many tokens, greedily */
export async function loadBareEngine(path: string): Promise<(message: string, maxTokens: number) => Promise<string>> {
  const llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    maxThreads: 1,
    logLevel: LlamaLogLevel.disabled,
  });
  const model = await llama.loadModel({ modelPath: path });
  const context = await model.createContext({ sequences: 1, contextSize: 2048, threads: 1 });
  const sequence = context.getSequence();
  const chatWrapper = resolveChatWrapper(model);
  return async (message, maxTokens) => {
    const chat = new LlamaChat({ contextSequence: sequence, chatWrapper });
    const history = [{ type: 'user' as const, text: message }];
    const { response } = await chat.generateResponse(history, { maxTokens, temperature: 0 });
    chat.dispose();
    return response;
  };
}
