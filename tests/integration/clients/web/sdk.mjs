// SPDX-License-Identifier: MIT
// Walks the main path with LangGraph's JavaScript SDK and prints what it saw as one object.
//
//   node sdk.mjs '{"url": ...}'

import { Client } from '@langchain/langgraph-sdk';

const { url } = JSON.parse(process.argv[2]);
const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
const human = (text) => ({ messages: [{ role: 'user', content: text }] });
const streamMode = ['values', 'messages-tuple', 'updates'];
const seen = {};

/** All parts of a stream. */
const all = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};

/** The status of the error that a promise ends with. */
const failure = async (promise) => {
  try {
    await promise;
    return null;
  } catch (error) {
    return error.status ?? String(error);
  }
};

const [assistant] = await client.assistants.search({ graphId: 'agent' });
seen.assistant = assistant;
seen.schemas = Object.keys(await client.assistants.getSchemas(assistant.assistant_id));
seen.graph = await client.assistants.getGraph('agent', { xray: true });

const { thread_id: thread } = await client.threads.create({ metadata: { of: 'js' } });
seen.created = [];
seen.parts = await all(
  client.runs.stream(thread, 'agent', {
    input: human('run: print(40 + 2)'),
    streamMode,
    onRunCreated: (run) => seen.created.push(run),
  }),
);
const run = seen.parts[0].data.run_id;
const middle = Math.floor(seen.parts.length / 2);
seen.middle = middle;
seen.joined = await all(
  client.runs.joinStream(thread, run, { lastEventId: seen.parts[middle].id, streamMode }),
);
seen.again = await all(client.runs.joinStream(thread, run, { lastEventId: '-1', streamMode }));
seen.joinedValues = await client.runs.join(thread, run);
seen.run = await client.runs.get(thread, run);
seen.runs = (await client.runs.list(thread)).map((r) => r.run_id);
seen.state = await client.threads.getState(thread);
seen.history = await client.threads.getHistory(thread, { limit: 100 });
seen.found = (await client.threads.search({ metadata: { of: 'js' } })).map((t) => t.thread_id);
seen.count = await client.threads.count({ metadata: { of: 'js' } });

// a fork: the human message again, in other words
const root = seen.history.at(-1).checkpoint;
await client.runs.wait(thread, 'agent', {
  input: human('other words'),
  checkpoint: { checkpoint_id: root.checkpoint_id, checkpoint_ns: '' },
});
seen.forked = await client.threads.getState(thread);
seen.old = await client.threads.getState(thread, seen.state.checkpoint.checkpoint_id);
await client.threads.updateState(thread, { values: human('more'), asNode: '__start__' });
seen.updated = await client.threads.getState(thread);
await client.threads.update(thread, { metadata: { patched: true } });
seen.patched = (await client.threads.get(thread)).metadata;
seen.copy = await client.threads.copy(thread);

// a run that is cancelled
const held = await client.runs.create(thread, 'agent', { input: human('hold: js') });
await client.runs.cancel(thread, held.run_id, true);
seen.cancelled = (await client.runs.get(thread, held.run_id)).status;

// a question, and its answer
const { thread_id: asking } = await client.threads.create();
const config = { configurable: { approve_tools: ['create_session'] } };
seen.asked = await all(
  client.runs.stream(asking, 'agent', { input: human('run: 1'), config, streamMode: 'values' }),
);
seen.waiting = await client.threads.get(asking);
seen.answered = await client.runs.wait(asking, 'agent', {
  command: { resume: { decisions: [{ type: 'reject', message: 'no' }] } },
});

seen.stateless = await client.runs.wait(null, 'agent', { input: human('hello') });
seen.failed = await failure(client.runs.wait(asking, 'agent', { input: human('status: 401') }));
seen.absent = await failure(client.threads.get('6f1d3f7e-43ab-4a53-8ed9-1d3b6d1b3b11'));
seen.refused = await failure(
  client.runs.create(thread, 'agent', { input: human('x'), multitaskStrategy: 'no' }),
);

await client.store.putItem(['js', 'a'], 'k', { x: 1 });
seen.item = await client.store.getItem(['js', 'a'], 'k');
seen.items = (await client.store.searchItems(['js'])).items.length;
seen.namespaces = (await client.store.listNamespaces({ prefix: ['js'] })).namespaces;
await client.store.deleteItem(['js', 'a'], 'k');
seen.noItem = await client.store.getItem(['js', 'a'], 'k');

const cron = await client.crons.create('agent', { schedule: '0 5 * * *', input: human('up') });
seen.crons = (await client.crons.search()).map((c) => c.cron_id === cron.cron_id);
await client.crons.delete(cron.cron_id);

// streaming protocol v2
const live = client.threads.stream({ assistantId: 'agent' });
await live.run.start({ input: human('run: print(6 * 7)') });
const texts = [];
for await (const message of live.messages) texts.push(message.text);
seen.said = await Promise.all(texts);
seen.output = await live.output;
await live.close();

await client.threads.delete(thread);
seen.deleted = await failure(client.threads.get(thread));
console.log(JSON.stringify(seen));
