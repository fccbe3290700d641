// SPDX-License-Identifier: MIT
// Uses one of the two React hooks in a page without a screen, and prints what it showed.
//
//   node hooks.mjs '{"url": ..., "hook": "legacy" | "react"}'
//
// A line "@NAME" asks whoever has started it to let the model go on that waits at NAME.

import { JSDOM } from 'jsdom';

const { url, hook } = JSON.parse(process.argv[2]);
const page = new JSDOM('<div id="root"></div>', { url: 'http://localhost/' });
Object.assign(globalThis, {
  window: page.window,
  document: page.window.document,
  sessionStorage: page.window.sessionStorage,
});

const { createElement } = await import('react');
const { createRoot } = await import('react-dom/client');
const { useStream } = await import(
  hook === 'legacy' ? '@langchain/langgraph-sdk/react' : '@langchain/react'
);

const TIMEOUT = 20_000;
const human = (content) => ({ messages: [{ type: 'human', content }] });
const seen = { errors: [] };

/** A component on the page: `now` is what its hook returned last. */
const mount = (options) => {
  const root = createRoot(document.getElementById('root'));
  const view = { renders: 0, waiting: new Set(), now: null, unmount: () => root.unmount() };
  const App = () => {
    view.now = useStream({
      apiUrl: url,
      assistantId: 'agent',
      onError: (error) => seen.errors.push(String(error)),
      ...options,
    });
    view.renders += 1;
    queueMicrotask(() => view.waiting.forEach((check) => check()));
    return null;
  };
  root.render(createElement(App));
  return view;
};

/** Waits until the hook shows what is wanted; returns that. */
const until = (view, what, wanted) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      const shown = JSON.stringify(view.now?.messages?.map(text));
      reject(new Error(`not within ${TIMEOUT} ms: ${what}; shown: ${shown} ${seen.errors}`));
    }, TIMEOUT);
    const check = () => {
      const found = view.now && wanted(view.now);
      if (!found) return;
      clearTimeout(late);
      view.waiting.delete(check);
      resolve(found);
    };
    view.waiting.add(check);
    check();
  });

/** "type: text"; the text may be in blocks. */
const text = ({ type, content }) => {
  const blocks = typeof content === 'string' ? [{ text: content }] : content;
  return `${type}: ${blocks.map((block) => block.text ?? '').join('')}`;
};
const idle = (now) => !now.isLoading && now.messages.length > 0;
const shown = (view) => view.now.messages.map(text);

/** The last message says this, and nothing goes on. */
const says = (pattern) => (now) => idle(now) && pattern.test(text(now.messages.at(-1)));

/** The first piece of a turn's answer, and nothing after. */
const holds = (name) => (now) =>
  now.messages.length > 1 &&
  now.messages.slice(-2).map(text).join() === `human: hold: ${name},ai: Held`;

/** A turn: submits, waits for an end of these words; what is shown then. */
const turn = async (view, input, pattern) => {
  void view.now.submit(input);
  await until(view, String(pattern), says(pattern));
  return shown(view);
};

const options = {
  legacy: { reconnectOnMount: true, fetchStateHistory: { limit: 1000 } },
  react: {},
}[hook];
let threadId = null;
const onThreadId = (id) => {
  threadId = id;
};
let run = null; // the last one that the hook has started
const onCreated = (created) => {
  run = created.run_id ?? created.runId;
};

let view = mount({ ...options, onThreadId, onCreated });
/** The page is opened anew, on the same thread. */
const reopen = () => {
  view.unmount();
  page.window.document.getElementById('root').outerHTML = '<div id="root"></div>';
  view = mount({ ...options, threadId, onThreadId, onCreated });
};
await until(view, 'the hook', () => true);

// a run with tools
seen.tools = await turn(view, human('run: print(40 + 2)'), /^ai: Result/);
seen.values = view.now.values.messages.length;

// pieces of an answer are shown as they come
const steps = new Set();
view.waiting.add(() => steps.add(shown(view).at(-1)));
void view.now.submit(human(`hold: hooks ${hook}`));
await until(view, 'a piece', holds(`hooks ${hook}`));
console.log(`@hooks ${hook}`);
await until(view, 'the rest', says(/released/));
seen.pieces = [...steps].filter((step) => step?.startsWith('ai: Held'));

// a question, answered
const config = { configurable: { approve_tools: ['list_sessions'] } };
void view.now.submit(human('call: list_sessions {}'), { config });
seen.interrupt = await until(view, 'a question', (now) => now.interrupt?.value);
const decisions = { decisions: [{ type: 'reject', message: 'no' }] };
if (hook === 'legacy') void view.now.submit(undefined, { command: { resume: decisions } });
else void view.now.respond(decisions);
await until(view, 'the end', says(/Result/));
seen.afterAnswer = shown(view);
seen.interruptLater = view.now.interrupt ?? null;

// a failure is shown, and the thread goes on
void view.now.submit(human('status: 401')).catch(() => {});
seen.failure = String(await until(view, 'an error', (now) => now.error));
seen.afterFailure = (await turn(view, human('hello'), /^ai: .*hello/)).slice(-2);

// the page is left while a run goes on, and opened again
const leaving = { streamResumable: true, onDisconnect: 'continue' };
void view.now.submit(human(`hold: again ${hook}`), leaving);
await until(view, 'a piece', holds(`again ${hook}`));
reopen();
await until(view, 'the piece again', (now) => now.messages.some((m) => text(m) === 'ai: Held'));
console.log(`@again ${hook}`);
await until(view, 'the rest', says(/released/));
seen.reopened = shown(view);

// a run is stopped, on a page that was opened when nothing went on: @langchain/react opens its
// stream behind its command then, and must not be told the end of a former run as that of this one
reopen();
await until(view, 'the rest again', says(/released/));
run = null;
void view.now.submit(human('hold: never')).catch(() => {});
await until(view, 'a piece', (now) => run && holds('never')(now));
seen.loading = view.now.isLoading;
await view.now.stop();
await until(view, 'a stop', (now) => !now.isLoading);
const stopped = `${url}/threads/${threadId}/runs/${run}`;
const ask = async (path) => (await fetch(path, { signal: AbortSignal.timeout(TIMEOUT) })).json();
await ask(`${stopped}/join`);
seen.stopped = (await ask(stopped)).status;

// the first message in other words: a branch of its own
if (hook === 'legacy') {
  await until(view, 'the history', (now) => now.history?.length > 0);
  const first = view.now.messages[0];
  const { parent_checkpoint: checkpoint } = view.now.getMessagesMetadata(first).firstSeenState;
  void view.now.submit(human('other words'), { checkpoint });
  await until(view, 'the branch', says(/^ai: .*other words/));
  seen.branch = shown(view);
  await until(view, 'both branches', (now) =>
    now.messages[0] && now.getMessagesMetadata(now.messages[0])?.branchOptions?.length === 2);
} else {
  seen.toolCalls = view.now.toolCalls.map((call) => call.name);
}
seen.threadId = threadId;
view.unmount();
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
