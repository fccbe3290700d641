// SPDX-License-Identifier: MIT
// The agent as the official server would run it: a model that is a script, and one tool. The
// script obeys the last message as tests/lib/fakemodel.py does: "call: NAME JSON", "status: N",
// "say: TEXT". A call is approved by a person first if the run's configuration says so.

import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, ToolMessage } from '@langchain/core/messages';
import type { BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { END, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

const PIECE = 8;

/** What is said or called next. */
const turn = (messages: BaseMessage[]) => {
  const last = messages.at(-1)!;
  if (last.getType() === 'tool') return { text: `Result: ${last.content}` };
  const asked = String(last.content);
  const [, word, rest] = /^(\w+): (.*)$/s.exec(asked) ?? [];
  if (word === 'status') throw new Error(`the model answers ${rest}`);
  if (word === 'say') return { text: rest };
  if (word !== 'call') return { text: `You said: ${asked}` };
  const [name, args] = rest.split(/ (.*)/s);
  return { call: { name, args } };
};

class Script extends BaseChatModel {
  _llmType() {
    return 'script';
  }

  async *_streamResponseChunks(messages: BaseMessage[], _options: unknown, manager?: any) {
    const { text = '', call } = turn(messages);
    const fields: object[] = [];
    for (let at = 0; at < text.length; at += PIECE)
      fields.push({ content: text.slice(at, at + PIECE) });
    if (call) {
      const id = `call_${messages.length}`;
      fields.push({ tool_call_chunks: [{ name: call.name, args: '', id, index: 0 }] });
      fields.push({ tool_call_chunks: [{ args: call.args, index: 0 }] });
    }
    for (const field of fields) {
      const message = new AIMessageChunk({ content: '', ...field });
      const chunk = new ChatGenerationChunk({ text: String(message.content), message });
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, {
        chunk,
      });
    }
  }

  async _generate(messages: BaseMessage[], options: unknown, manager?: any) {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this._streamResponseChunks(messages, options, manager))
      whole = whole ? whole.concat(chunk) : chunk;
    return { generations: [whole!] };
  }
}

const script = new Script({});

const model = async ({ messages }: typeof MessagesAnnotation.State) => ({
  messages: [await script.invoke(messages)],
});

const tools = async ({ messages }: typeof MessagesAnnotation.State, config: any) => {
  const [call] = (messages.at(-1) as AIMessageChunk).tool_calls!;
  let refusal: string | undefined;
  if (config.configurable?.approve_tools) {
    const answer = interrupt({
      action_requests: [{ name: call.name, args: call.args, description: 'a call' }],
      review_configs: [
        { action_name: call.name, allowed_decisions: ['approve', 'edit', 'reject'] },
      ],
    });
    const [decision] = answer.decisions;
    if (decision.type === 'reject') refusal = decision.message;
  }
  const content = JSON.stringify(refusal ? { success: false } : { success: true, sessions: [] });
  const status = refusal ? 'error' : 'success';
  return {
    messages: [new ToolMessage({ content, name: call.name, tool_call_id: call.id!, status })],
  };
};

const after = ({ messages }: typeof MessagesAnnotation.State) =>
  (messages.at(-1) as AIMessageChunk).tool_calls?.length ? 'tools' : END;

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', model)
  .addNode('tools', tools)
  .addEdge(START, 'model')
  .addConditionalEdges('model', after, ['tools', END])
  .addEdge('tools', 'model')
  .compile();
