/**
 * The tool calls of an Ollama conversation that wait for a result. A result names its call by id, or only by the tool's
 * name, or, from old clients, not at all: then it is the first one's that fits. Each is found without a search, since a
 * conversation may have ten thousand.
 */

export interface OpenCall {
  readonly id: string;
  readonly name: string;
}

interface Result {
  readonly tool_call_id?: string | null | undefined;
  readonly tool_name?: string | null | undefined;
}

export interface OpenCalls {
  add(call: OpenCall): void;
  /** The call that this result answers, which then waits no more. */
  take(result: Result): OpenCall | undefined;
}

export function createOpenCalls(): OpenCalls {
  const all = new Set<OpenCall>();
  const byId = new Map<string, Set<OpenCall>>();
  const byName = new Map<string, Set<OpenCall>>();
  return {
    add(call) {
      all.add(call);
      addTo(byId, call.id, call);
      addTo(byName, call.name, call);
    },
    take({ tool_call_id: id, tool_name: name }) {
      const named = name ? first(byName.get(name)) : undefined;
      const call = (id ? first(byId.get(id)) : undefined) ?? (name ? named : id ? undefined : first(all));
      if (call === undefined) return undefined;
      all.delete(call);
      byId.get(call.id)?.delete(call);
      byName.get(call.name)?.delete(call);
      return call;
    },
  };
}

function addTo(calls: Map<string, Set<OpenCall>>, key: string, call: OpenCall): void {
  const same = calls.get(key) ?? new Set();
  same.add(call);
  calls.set(key, same);
}

function first(calls: ReadonlySet<OpenCall> | undefined): OpenCall | undefined {
  return calls?.values().next().value;
}
