import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the page keeps the licences of what it is made of", () => {
  const page = readFileSync("dist/report.html", "utf8");
  const notices = page.slice(page.lastIndexOf("<!--"));
  for (const owner of [
    "The Apache Software Foundation", // echarts: NOTICE
    "Apache License",
    "Mike Bostock", // d3, a part of echarts
    "Copyright (c) 2017, Baidu Inc.", // zrender
    "Copyright (c) Microsoft Corporation", // tslib
  ]) {
    expect(notices).toContain(owner);
  }
});
