// SPDX-License-Identifier: MIT
// Streams one run with LangGraph's JavaScript SDK over a connection that breaks; prints all parts,
// after one that says which run it was.
//
//   node cut.mjs '{"url": ...}'

import { Client } from '@langchain/langgraph-sdk';

const client = new Client({ apiUrl: JSON.parse(process.argv[2]).url });
const { thread_id: thread } = await client.threads.create();
const parts = [];
const stream = client.runs.stream(thread, 'agent', {
  input: { messages: [{ role: 'user', content: 'count: 60' }] },
  streamMode: ['values', 'messages-tuple'],
  streamResumable: true,
  onRunCreated: (data) => parts.push({ event: 'created', data }),
});
for await (const part of stream) parts.push(part);
console.log(JSON.stringify(parts));
