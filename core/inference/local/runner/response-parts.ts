/**
 * What the engine reports while it generates, as the stream parts of the model port: blocks of text or reasoning
 * that start, grow and end, and tool calls that stream their arguments. Pure but for the ids it draws.
 *
 *     text-start (text-delta)* text-end
 *     reasoning-start (reasoning-delta)* reasoning-end
 *     tool-input-start (tool-input-delta)* tool-input-end tool-call
 *
 * At most one of these is open at a time.
 */
import { randomBytes } from 'node:crypto';
import type { ModelStreamPart } from '../../model-port.ts';

type Block = 'text' | 'reasoning';

interface OpenCall {
  readonly id: string;
  readonly name: string;
  /** The arguments sent so far. */
  input: string;
  /** White space that is passed on only if more follows: the engine's grammar ends a call with blank lines. */
  heldBack: string;
}

export class ResponseParts {
  readonly #emit: (part: ModelStreamPart) => void;
  #open: { readonly block: Block; readonly id: string } | undefined;
  #call: OpenCall | undefined;
  #lastBlock: Block | undefined;
  #blocks = 0;
  /** Tokens that went into reasoning so far. */
  reasoningTokens = 0;
  hasCalls = false;
  /** The answer so far, without its thoughts. */
  text = '';
  /** White space at the start of a block, shown only once there is something after it. */
  #leading = '';

  constructor(emit: (part: ModelStreamPart) => void) {
    this.#emit = emit;
  }

  /** Adds to the open block of this kind, or ends the other kind's and starts one. */
  write(block: Block, text: string, tokens = 0): void {
    if (block === 'reasoning') this.reasoningTokens += tokens;
    if (this.#open?.block !== block) {
      if (this.#open !== undefined) this.#leading = '';
      this.#endBlock();
      this.#leading += text;
      if (this.#leading.trim() === '') return;
      this.#startBlock(block);
      return;
    }
    if (text !== '') this.#grow(block, this.#open.id, text);
  }

  writeCall(name: string, argumentsText: string): void {
    this.#leading = '';
    this.#endBlock();
    this.#call ??= this.#startCall(name);
    const call = this.#call;
    const text = call.heldBack + argumentsText;
    const kept = text.trimEnd();
    call.heldBack = text.slice(kept.length);
    if (kept === '') return;
    call.input += kept;
    this.#emit({ type: 'tool-input-delta', id: call.id, delta: kept });
  }

  endCall(name: string): void {
    // A tool without parameters is reported only when it is over.
    if (this.#call === undefined || this.#call.input === '') this.writeCall(name, '{}');
    const call = this.#call;
    if (call === undefined) return;
    this.#call = undefined;
    this.#emit({ type: 'tool-input-end', id: call.id });
    this.#emit({ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.input });
  }

  /** Ends what is open. White space that nothing followed is the whole answer only if there was no other. */
  end(): void {
    if (this.#leading !== '' && this.#blocks === 0) this.#startBlock('text');
    this.#endBlock();
  }

  #startBlock(block: Block): void {
    const id = String(this.#blocks);
    this.#blocks += 1;
    this.#open = { block, id };
    this.#emit({ type: `${block}-start`, id });
    // Models set their answer apart from their thoughts by blank lines, which a client shows apart anyway.
    const delta = this.#lastBlock === 'reasoning' ? this.#leading.trimStart() : this.#leading;
    this.#grow(block, id, delta);
    this.#leading = '';
    this.#lastBlock = block;
  }

  #grow(block: Block, id: string, delta: string): void {
    if (block === 'text') this.text += delta;
    this.#emit({ type: `${block}-delta`, id, delta });
  }

  #endBlock(): void {
    if (this.#open === undefined) return;
    this.#emit({ type: `${this.#open.block}-end`, id: this.#open.id });
    this.#open = undefined;
  }

  #startCall(name: string): OpenCall {
    this.#blocks += 1;
    this.hasCalls = true;
    const call = { id: `call_${randomBytes(12).toString('hex')}`, name, input: '', heldBack: '' };
    this.#emit({ type: 'tool-input-start', id: call.id, toolName: name });
    return call;
  }
}
