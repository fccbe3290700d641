/* SPDX-License-Identifier: MIT */
/*
 * The graph that the official server runs beside ours: one node that answers what the last message
 * says. "say: TEXT" says it, "boom" fails, "ask" interrupts with a question and says the answer.
 */
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { END, MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";

async function answer(text: string): Promise<string> {
  if (text === "boom") throw new Error("boom");
  if (text === "ask") return `answer ${JSON.stringify(interrupt({ question: "sure?" }))}`;
  return text.replace(/^say: /, "");
}

async function model(state: typeof MessagesAnnotation.State) {
  const last = state.messages.at(-1)?.content;
  const text = await answer(typeof last === "string" ? last : "");
  const chat = new FakeListChatModel({ responses: [text] });
  return { messages: [await chat.invoke(state.messages)] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", model)
  .addEdge(START, "model")
  .addEdge("model", END)
  .compile();
