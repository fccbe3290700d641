// SPDX-License-Identifier: MIT
import { describe, expect, it } from "vitest";
import {
  addStates,
  type ChatState,
  headOf,
  idOf,
  isSaved,
  type KnownStates,
  marksOf,
  missingBefore,
  newestBranch,
  noStates,
  skeletonOf,
  statesOf,
} from "@/chat/history";

/** A state: its id, the id of the one before it, and the ids of its messages. */
function light(id: string, parent: string | null, ids: string[]): ChatState {
  const checkpoint = (name: string) => ({ checkpoint_id: name, checkpoint_ns: "" });
  return {
    values: { messages: ids.map((one) => ({ id: one })) },
    checkpoint: checkpoint(id),
    parent_checkpoint: parent === null ? null : checkpoint(parent),
  } as unknown as ChatState;
}

/** The same with what the messages say. */
function whole(state: ChatState): ChatState {
  const messages = state.values.messages.map(
    ({ id }) => ({ id, type: "human", content: `text of ${id}` }) as const,
  );
  return { ...state, values: { messages } };
}

/**
 * Newest first, as the server sends them: 1-2-3-4, then 1-5-6-7 after "a" was said anew as "c",
 * then 6-8 when the answer to that was made again.
 */
const all = [
  light("8", "6", ["c", "e"]),
  light("7", "6", ["c", "d"]),
  light("6", "5", ["c"]),
  light("5", "1", []),
  light("4", "3", ["a", "b", "b2"]),
  light("3", "2", ["a", "b"]),
  light("2", "1", ["a"]),
  light("1", null, []),
];

const known = addStates(addStates(noStates, all), all.slice(0, 1).map(whole));
const textsOf = (state: ChatState | undefined) => state?.values.messages.map((m) => m.content);
const tree = (states: KnownStates) =>
  skeletonOf(states).map((s) => [idOf(s), s.parent_checkpoint?.checkpoint_id]);

describe("states", () => {
  it("are whole or light, in any order", () => {
    expect(statesOf(known).map(idOf)).toEqual(["8", "7", "6", "5", "4", "3", "2", "1"]);
    expect(textsOf(statesOf(known)[0])).toEqual(["text of c", "text of e"]);
    expect(textsOf(statesOf(known)[1])).toEqual([]);
    const again = addStates(known, all.slice(0, 2));
    expect(textsOf(statesOf(again)[0])).toEqual(["text of c", "text of e"]);
  });

  it("tell what is missing", () => {
    const part = addStates(noStates, all.slice(0, 2));
    expect(idOf(missingBefore(part, all.slice(0, 2)) as ChatState)).toBe("7");
    expect(missingBefore(known, all)).toBeNull();
    expect(missingBefore(noStates, [])).toBeNull();
  });

  it("tell what is saved", () => {
    expect(isSaved(known, "e")).toBe(true);
    expect(isSaved(known, "d")).toBe(false);
    expect(isSaved(noStates, "e")).toBe(false);
  });
});

describe("skeletonOf", () => {
  it("keeps where branches begin, part and end", () => {
    expect(tree(known)).toEqual([
      ["8", "6"],
      ["7", "6"],
      ["6", "5"],
      ["5", "1"],
      ["4", "2"],
      ["2", "1"],
      ["1", undefined],
    ]);
  });

  it("leaves out the inside of a branch, and what it says", () => {
    const line = [light("9", "8", ["c", "e", "f"]), ...all];
    const states = addStates(addStates(noStates, line), [whole(light("8", "6", ["c", "e"]))]);
    expect(tree(states).slice(0, 2)).toEqual([
      ["9", "8"],
      ["8", "6"],
    ]);
    expect(textsOf(skeletonOf(states)[1])).toEqual([]);
  });

  it("bears a beginning that is not known yet", () => {
    expect(tree(addStates(noStates, all.slice(4, 6)))).toEqual([
      ["4", "3"],
      ["3", "2"],
    ]);
  });
});

describe("marksOf", () => {
  it("finds where messages can be said anew, and the choices", () => {
    const marks = marksOf(known, "");
    expect([...marks.keys()]).toEqual(["c", "e"]);
    expect(marks.get("c")?.fork?.checkpoint_id).toBe("5");
    expect(marks.get("c")?.options).toEqual(["2", "5"]);
    expect(marks.get("c")?.branch).toBe("5");
    expect(marks.get("e")).toMatchObject({ branch: "5>8", options: ["5>7", "5>8"] });
    expect(marks.get("e")?.forkBranch).toBe("5");
  });

  it("offers a choice once, at the first message of the branch", () => {
    const marks = marksOf(known, "2");
    expect([...marks.keys()]).toEqual(["a", "b", "b2"]);
    expect([...marks.values()].map((mark) => mark.options.length)).toEqual([2, 0, 0]);
    expect(marks.get("b2")?.fork?.checkpoint_id).toBe("3");
  });

  it("does not guess", () => {
    const marks = marksOf(addStates(noStates, all.slice(0, 3)), "");
    expect(marks.get("c")?.fork).toBeUndefined();
    expect(marks.get("e")?.fork?.checkpoint_id).toBe("6");
    expect(marksOf(noStates, "").size).toBe(0);
  });
});

describe("newestBranch", () => {
  it("leads to what was said last, also on a branch that is older", () => {
    expect(newestBranch(known)).toBe("5>8");
    expect(newestBranch(addStates(known, [light("9", "4", ["a", "b", "b2", "f"])]))).toBe("2");
    expect(newestBranch(addStates(noStates, all.slice(4, 6)))).toBe("");
    expect(newestBranch(noStates)).toBe("");
  });
});

describe("headOf", () => {
  it("is the end of a branch, and tells whether it is here", () => {
    expect(headOf(known, "")).toEqual({ id: "8", whole: true });
    expect(headOf(known, "2")).toEqual({ id: "4", whole: false });
    expect(headOf(known, "5>7")).toEqual({ id: "7", whole: false });
    expect(headOf(noStates, "")).toBeNull();
  });
});
