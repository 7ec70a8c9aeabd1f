import { expect, test } from "vitest";
import { serverData } from "../src/data";
import type { LayerChoice } from "../src/format";
import { choiceInWords, spanInWords } from "../src/words";
import { serverOf } from "./fixture/server";

test("a choice is told as what becomes of the picture", () => {
  const choice: LayerChoice = {
    ...serverOf(100).choices[0]!,
    decision: "chosen",
    from: 2,
    to: 0,
  };
  expect(choiceInWords(choice)).toBe("layer 2 → 0 chosen");
  expect(choiceInWords({ ...choice, from: null })).toBe("layer 0 chosen");
  expect(choiceInWords({ ...choice, to: null })).toBe("paused");
  expect(choiceInWords({ ...choice, decision: "switched" })).toBe("layer 0 sent from now on");
  const cut = { ...choice, decision: "cut", from: null, to: null };
  expect(choiceInWords(cut)).toBe("nothing sent until the key frame");
});

test("a bar says its layer, its reason and its time", () => {
  const span = { from_s: 25, to_s: 50.5, layer: 0, reason: "over budget" };
  expect(spanInWords(span)).toBe("layer 0: over budget (25.00 to 50.50 s)");
  const start = { from_s: 0, to_s: 1, layer: null, reason: "" };
  expect(spanInWords(start)).toBe("nothing sent (0.00 to 1.00 s)");
});

test("the file of a server has a row for each time of each lane", () => {
  const { head, rows } = serverData("sfu/start", serverOf(100));
  expect(rows.length).toBe(5);
  expect(rows[2]).toEqual([
    "sfu/start",
    "nada",
    "publisher-1",
    "media-1",
    25,
    50,
    0,
    "over budget",
  ]);
  expect(rows.every((row) => row.length === head.length)).toBe(true);
});
