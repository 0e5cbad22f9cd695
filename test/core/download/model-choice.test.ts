import { expect, test } from 'vitest';
import { chooseModel, modelCandidates } from '../../../core/download/model-choice.ts';

const files = (...paths: string[]) => paths.map((path, index) => ({ path, sizeBytes: 100 + index }));
const choice = (paths: string[], wanted?: string) =>
  chooseModel(modelCandidates(files(...paths)), wanted).map(({ name }) => name);

test('parts of one model belong together, and half of them are none', () => {
  const candidates = modelCandidates(
    files(
      'Q8_0/m-Q8_0-00002-of-00002.gguf',
      'Q8_0/m-Q8_0-00001-of-00002.gguf',
      'm-F16-00001-of-00003.gguf',
      'm-Q4_K_M.gguf',
      'mmproj-m.gguf',
      'imatrix.gguf',
      'README.md',
    ),
  );
  expect(candidates.map(({ name, quantization, sizeBytes }) => [name, quantization, sizeBytes])).toEqual([
    ['m-Q4_K_M', 'Q4_K_M', 103],
    ['Q8_0/m-Q8_0', 'Q8_0', 201],
  ]);
  expect(candidates[1]!.files[0]!.path).toContain('00001-of-00002');
});

test.each<[string[], string | undefined, string[]]>([
  [['m-Q8_0.gguf', 'm-Q4_K_M.gguf', 'm-Q4_0.gguf'], undefined, ['m-Q4_K_M']],
  [['m-Q8_0.gguf', 'm-q4_0.gguf'], undefined, ['m-q4_0']],
  [['m-Q8_0.gguf', 'm-Q5_K_M.gguf'], undefined, ['m-Q5_K_M']],
  [['m-f16.gguf', 'm-Q2_K.gguf'], undefined, ['m-f16']],
  [['model.gguf'], undefined, ['model']],
  [['a.gguf', 'b.gguf'], undefined, ['a', 'b']],
  [['a-Q4_K_M.gguf', 'b-Q4_K_M.gguf', 'a-Q8_0.gguf'], undefined, ['a-Q4_K_M', 'b-Q4_K_M']],
  [['m-Q8_0.gguf', 'm-Q4_K_M.gguf'], 'q8_0', ['m-Q8_0']],
  [['m-Q8_0.gguf', 'm-UD-Q8_0.gguf'], 'Q8_0', ['m-Q8_0']],
  [['m-Q8_0.gguf', 'm-Q4_K_M.gguf'], 'Q6_K', []],
  [['m-Q4_K_S.gguf', 'm-Q4_K_M.gguf'], 'Q4_K', []],
  [['sub/a-Q4_K_M.gguf', 'b-Q4_K_M.gguf'], 'a-Q4_K_M', ['sub/a-Q4_K_M']],
  [['sub/a-Q4_K_M.gguf', 'b-Q4_K_M.gguf'], 'sub/a-Q4_K_M.gguf', ['sub/a-Q4_K_M']],
])('%j, %s wanted: %j', (paths, wanted, expected) => {
  expect(choice(paths, wanted)).toEqual(expected);
});
