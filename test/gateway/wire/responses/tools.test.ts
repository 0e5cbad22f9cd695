import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce } from '../../../../core/steps.ts';
import { parseTools, portTools, toolChoiceSchema, toolSchema } from '../../../../gateway/wire/responses/tools.ts';
import { runs } from '../../../support/sampling.ts';

const tools = (list: readonly object[]) => atOnce(parseTools(toolSchema.array().parse(list)));
const fn = (name: string) => ({ type: 'function', name });
const group = (name: string, ...members: readonly string[]) => ({ type: 'namespace', name, tools: members.map(fn) });
const namesOf = (list: readonly object[]) => tools(list).functions.map((tool) => tool.name);

describe('namespaces', () => {
  test.each<[string, string, string]>([
    ['mcp__files', 'read', 'mcp__files__read'],
    ['mcp__files__', 'read', 'mcp__files__read'],
    ['crm', 'list-all', 'crm__list-all'],
  ])('%s and %s make %s', (namespace, name, joined) => {
    const parsed = tools([group(namespace, name)]);
    expect(parsed.functions.map((tool) => tool.name)).toEqual([joined]);
    expect(parsed.clientName(joined)).toEqual({ namespace, name });
    expect(parsed.modelName({ namespace, name })).toBe(joined);
  });

  test('a tool without a namespace keeps its name, whichever comes first', () => {
    const list = [group('a', 'b'), fn('a__b'), fn('x')];
    const [joined = '', ...plain] = namesOf(list);
    expect(plain).toEqual(['a__b', 'x']);
    expect(joined).toMatch(/^a__b_[0-9a-f]{8}$/);
    expect(tools(list).clientName('a__b')).toEqual({ name: 'a__b' });
    expect(tools(list).clientName(joined)).toEqual({ namespace: 'a', name: 'b' });
  });

  test('two tools with one name are refused', () => {
    for (const list of [[fn('a'), fn('a')], [group('n', 'a', 'a')], [group('n', 'a'), group('n', 'a')]]) {
      expect(() => tools(list)).toThrow(expect.objectContaining({ code: 'bad_request', param: expect.any(String) }));
    }
  });

  test('the name of a tool that is gone is still what it was', () => {
    expect(tools([]).modelName({ namespace: 'mcp__files', name: 'read' })).toBe('mcp__files__read');
    expect(tools([]).modelName({ name: 'read' })).toBe('read');
    expect(tools([]).clientName('read')).toEqual({ name: 'read' });
  });

  test('whatever the names, the model sees legal ones, no two alike, and each leads back to its own', () => {
    const name = fc.stringMatching(/^[\w.-]{1,64}$/);
    const short = fc.constantFrom('a', 'b', 'a__b', '_', '__', 'a_');
    const plain = fc.uniqueArray(fc.oneof(short, name), { maxLength: 4 });
    const groups = fc.uniqueArray(
      fc.record({
        namespace: fc.oneof(short, fc.string({ minLength: 1 })),
        members: fc.uniqueArray(fc.oneof(short, name)),
      }),
      { selector: (one) => one.namespace, maxLength: 4 },
    );
    fc.assert(
      fc.property(plain, groups, (alone, grouped) => {
        const parsed = tools([...grouped.map((one) => group(one.namespace, ...one.members)), ...alone.map(fn)]);
        const modelNames = parsed.functions.map((tool) => tool.name);
        expect(modelNames.every((one) => /^[\w.-]{1,64}$/.test(one))).toBe(true);
        expect(new Set(modelNames).size).toBe(modelNames.length);
        const called = [
          ...grouped.flatMap(({ namespace, members }) => members.map((one) => ({ namespace, name: one }))),
          ...alone.map((one) => ({ name: one })),
        ];
        expect(modelNames.map((one) => parsed.clientName(one))).toEqual(called);
        expect(called.map((one) => parsed.modelName(one))).toEqual(modelNames);
      }),
      runs(5000),
    );
  });
});

describe('tool choice', () => {
  const choose = (list: readonly object[], choice: unknown) => {
    const { tools: callable, toolChoice } = portTools(tools(list), toolChoiceSchema.parse(choice));
    return [callable?.map((tool) => tool.name), toolChoice];
  };
  const list = [fn('a'), fn('b'), group('n', 'c'), { type: 'web_search' }];

  test.each<[unknown, unknown]>([
    ['auto', [['a', 'b', 'n__c'], { type: 'auto' }]],
    ['none', [['a', 'b', 'n__c'], { type: 'none' }]],
    ['required', [['a', 'b', 'n__c'], { type: 'required' }]],
    [{ type: 'function', name: 'b' }, [['a', 'b', 'n__c'], { type: 'tool', toolName: 'b' }]],
    [{ type: 'function', namespace: 'n', name: 'c' }, [['a', 'b', 'n__c'], { type: 'tool', toolName: 'n__c' }]],
    [{ type: 'allowed_tools', tools: [fn('b'), { type: 'web_search' }] }, [['b'], { type: 'auto' }]],
    [{ type: 'allowed_tools', mode: 'required', tools: [fn('a')] }, [['a'], { type: 'required' }]],
    [{ type: 'allowed_tools', tools: [{ type: 'function', namespace: 'n', name: 'c' }] }, [['n__c'], { type: 'auto' }]],
  ])('%j', (choice, expected) => {
    expect(choose(list, choice)).toEqual(expected);
  });

  test('no tools at all are not mentioned; a demand for one is', () => {
    expect(choose([{ type: 'mcp', server_url: 'https://mcp.example' }], 'auto')).toEqual([undefined, undefined]);
    expect(choose([], 'required')).toEqual([[], { type: 'required' }]);
  });
});

test('tools of other people’s machines are left out and named, each kind of them', () => {
  const list = [
    { type: 'web_search' },
    { type: 'mcp' },
    fn('a'),
    { type: 'namespace', name: 'n', tools: [{ type: 'custom', name: 'x' }] },
  ];
  const parsed = tools(list);
  expect(parsed.functions.map((tool) => tool.name)).toEqual(['a']);
  expect(parsed.ignored).toEqual(['tools.web_search', 'tools.mcp', 'tools.custom']);
});
