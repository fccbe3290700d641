// SPDX-License-Identifier: MIT
// Drives a run with AG-UI's agent for LangGraph, alone or behind CopilotKit's runtime, and prints
// the events that a user interface would get. With "approve" a person is asked first, and refuses.
//
//   node agui.mjs '{"url": ..., "hook": "agui" | "copilotkit", "approve": false}'

const { url, hook, approve } = JSON.parse(process.argv[2]);
const threadId = crypto.randomUUID();
const text = 'run: print(40 + 2)';

/** The agent's own events of one run. */
const alone = async () => {
  const { LangGraphAgent } = await import('@ag-ui/langgraph');
  const assistantConfig = approve && { configurable: { approve_tools: ['create_session'] } };
  const agent = new LangGraphAgent({ deploymentUrl: url, graphId: 'agent', assistantConfig });
  agent.threadId = threadId;
  agent.setMessages([{ id: crypto.randomUUID(), role: 'user', content: text }]);
  const events = [];
  const onEvent = ({ event }) => void events.push(event);
  await agent.runAgent({ runId: crypto.randomUUID() }, { onEvent });
  if (approve) {
    const resume = { decisions: [{ type: 'reject', message: 'not today' }] };
    const forwardedProps = { command: { resume } };
    await agent.runAgent({ runId: crypto.randomUUID(), forwardedProps }, { onEvent });
  }
  return { events, messages: agent.messages };
};

/** The same through the runtime's HTTP endpoint. */
const behind = async () => {
  const { CopilotRuntime, createCopilotRuntimeHandler } = await import('@copilotkit/runtime/v2');
  const { LangGraphAgent } = await import('@copilotkit/runtime/langgraph');
  const agent = new LangGraphAgent({ deploymentUrl: url, graphId: 'agent' });
  const handler = createCopilotRuntimeHandler({
    runtime: new CopilotRuntime({ agents: { default: agent } }),
    basePath: '/api/copilotkit',
  });
  const response = await handler(
    new Request('http://localhost/api/copilotkit/agent/default/run', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({
        threadId,
        runId: crypto.randomUUID(),
        state: {},
        messages: [{ id: crypto.randomUUID(), role: 'user', content: text }],
        tools: [],
        context: [],
        forwardedProps: {},
      }),
    }),
  );
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const frames = (await response.text()).split('\n\n').filter((f) => f.startsWith('data: '));
  return { events: frames.map((frame) => JSON.parse(frame.slice('data: '.length))) };
};

const { events, messages } = await (hook === 'agui' ? alone() : behind());
const own = events.filter(({ type }) => type !== 'RAW').map(({ rawEvent: _, ...event }) => event);
const last = JSON.stringify({ threadId, events: own, messages });
process.stdout.write(`${last}\n`, () => process.exit(0));
