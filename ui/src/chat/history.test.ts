// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import {
  addStates,
  type ChatState,
  forkPoint,
  isSaved,
  missingBefore,
  noStates,
  statesOf,
} from "@/chat/history";

/** A state: its id, the id of the one before it, and the ids of its messages. */
function state(id: string, parent: string | null, ids: string[]): ChatState {
  const messages = ids.map((one) => ({ id: one, type: "human", content: `text of ${one}` }));
  const checkpoint = (name: string) => ({ checkpoint_id: name, checkpoint_ns: "" });
  return {
    values: { messages },
    checkpoint: checkpoint(id),
    parent_checkpoint: parent === null ? null : checkpoint(parent),
  } as unknown as ChatState;
}

/** Two branches: 1-2-3, and 1-4-5 after an edit; newest first as the server sends them. */
const five = [
  state("5", "4", ["c", "d"]),
  state("4", "1", ["c"]),
  state("3", "2", ["a", "b"]),
  state("2", "1", ["a"]),
  state("1", null, []),
];

const idsOf = (s: ChatState | undefined) => s?.values.messages.map((m) => m.id);

describe("states", () => {
  it("keep all at the ends of branches, and what is new elsewhere", () => {
    const states = statesOf(addStates(noStates, five));
    expect(states.map((s) => s.checkpoint.checkpoint_id)).toEqual(["5", "4", "3", "2", "1"]);
    expect(states.map(idsOf)).toEqual([["c", "d"], ["c"], ["a", "b"], ["a"], []]);
    expect(states[0]?.values.messages[0]?.content).toBe("text of c");
    expect(states[1]?.values.messages[0]?.content).toBe("");
  });

  it("may come in pages, in any number", () => {
    const first = five.slice(0, 3);
    const known = addStates(noStates, first);
    expect(missingBefore(known, first)?.checkpoint.checkpoint_id).toBe("3");
    // Whether "c" was new in 4 cannot be told yet.
    expect(idsOf(statesOf(known)[1])).toEqual([]);
    const all = addStates(known, five.slice(3));
    expect(idsOf(statesOf(all)[1])).toEqual(["c"]);
    expect(missingBefore(all, five.slice(3))).toBeNull();
    expect(statesOf(all)).toEqual(statesOf(addStates(noStates, five)));
  });

  it("become light when they have a follower", () => {
    const known = addStates(addStates(noStates, five), [state("6", "5", ["c", "d", "e"])]);
    expect(idsOf(statesOf(known)[0])).toEqual(["c", "d", "e"]);
    expect(idsOf(statesOf(known)[1])).toEqual(["d"]);
  });

  it("tell what is saved", () => {
    const known = addStates(noStates, five);
    expect(isSaved(known, "d")).toBe(true);
    expect(isSaved(known, "b")).toBe(false);
    expect(isSaved(noStates, "d")).toBe(false);
  });
});

describe("forkPoint", () => {
  const known = addStates(noStates, five);

  it("is the state before the one that has it first", () => {
    expect(forkPoint(known, five[3], "a")?.checkpoint_id).toBe("1");
    expect(forkPoint(known, five[2], "b")?.checkpoint_id).toBe("2");
  });

  it("is not guessed", () => {
    expect(forkPoint(known, undefined, "a")).toBeUndefined();
    expect(forkPoint(known, five[2], "a")).toBeUndefined();
    expect(forkPoint(addStates(noStates, five.slice(0, 1)), five[0], "c")).toBeUndefined();
  });
});
