/** What a hostile page runs: every way that a page has to send something to an address, and what it learned of it. */

const PROMPT = '{"model":"foundation","messages":[{"role":"user","content":"Hello"}]}';
const JSON_TYPE = { 'content-type': 'application/json' };

// By the way that was tried: what the page could read, or that it failed.
async function attack(target) {
  const chat = `${target}/v1/chat/completions`;
  const read = async (url, init) => {
    const response = await fetch(url, init);
    return `${response.type} ${response.status}`;
  };
  return {
    'simple GET': await outcome(read(`${target}/v1/models`)),
    'simple POST': await outcome(read(chat, { method: 'POST', body: PROMPT })),
    'preflighted POST': await outcome(read(chat, { method: 'POST', body: PROMPT, headers: JSON_TYPE })),
    'preflighted DELETE': await outcome(read(`${target}/v1/models/x`, { method: 'DELETE' })),
    'blind GET': await outcome(read(`${target}/v1/models`, { mode: 'no-cors' })),
    'blind POST': await outcome(read(chat, { method: 'POST', body: PROMPT, mode: 'no-cors' })),
    beacon: String(navigator.sendBeacon(chat, PROMPT)),
    form: await outcome(submitForm(chat)),
    image: await outcome(loaded(document.createElement('img'), `${target}/v1/models`)),
    script: await outcome(loaded(document.createElement('script'), `${target}/v1/models`)),
    'event source': await outcome(eventSource(chat)),
  };
}

function outcome(attempt) {
  return attempt.catch(() => 'failed');
}

/** A form can send JSON, too, as plain text whose last bytes are a field's value. */
function submitForm(action) {
  const frame = Object.assign(document.createElement('iframe'), { name: 'answer' });
  document.body.append(frame);
  const form = Object.assign(document.createElement('form'), {
    action,
    method: 'post',
    enctype: 'text/plain',
    target: 'answer',
  });
  form.append(Object.assign(document.createElement('input'), { name: PROMPT.slice(0, -1) + ',"x":"', value: '"}' }));
  document.body.append(form);
  return new Promise((resolve) => {
    // Null for a page of another origin.
    frame.addEventListener('load', () => resolve(frame.contentDocument?.body.innerText ?? 'unreadable'));
    form.submit();
  });
}

function loaded(element, url) {
  return new Promise((resolve) => {
    element.addEventListener('load', () => resolve('loaded'));
    element.addEventListener('error', () => resolve('failed'));
    element.src = url;
    document.body.append(element);
  });
}

function eventSource(url) {
  return new Promise((resolve) => {
    const events = new EventSource(url);
    events.addEventListener('open', () => resolve('open'));
    events.addEventListener('error', () => {
      events.close();
      resolve('failed');
    });
  });
}

globalThis.attack = attack;
