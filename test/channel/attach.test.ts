import { expect, test } from 'vitest';
import { answerOf, bytes, deliver, newGateway, newSession, sealRequest, text } from './paired.ts';

test('an answer that was cut anywhere goes on in bare records', () => {
  for (let cut = 22; cut < 22 + 3 * 277; cut++) {
    const gateway = newGateway();
    const { call, wire } = sealRequest(newSession(gateway, gateway.pair()));
    const { header, records } = answerOf(deliver(gateway, wire));
    const sealed = [records.sealHead(text('200')), records.sealPad(), ...records.sealBody(text('hello'))];
    const before = [...call.answer.push(bytes(header, ...sealed).subarray(0, cut))];
    expect(call.answer.isOver).toBe(false);
    call.answer.attach();
    const after = [...call.answer.push(bytes(...sealed.slice(call.answer.nextIndex)))];
    expect([...before, ...after].map(({ type }) => type)).toEqual(['head', 'data', 'end']);
    expect(call.answer.isFinished).toBe(true);
  }
});
