// Fixtures for Playwright's test runner: `page` and `far` are pages on the two hosts of an emulated network.

import { test as base } from "@playwright/test";

import { Network } from "./network.mjs";

export { expect } from "@playwright/test";
export { Network } from "./network.mjs";

/** What Chromium needs for calls without people: a camera, and cameras on a page without a certificate. */
function arguments_(network, browserName, launchOptions) {
  const given = launchOptions.args ?? [];
  if (browserName !== "chromium") return given;
  const added = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
  if (network.origin) added.push(`--unsafely-treat-insecure-origin-as-secure=${network.origin}`);
  return [...added, ...given];
}

/** A browser on a host, with Playwright's own options. */
function browserOn(host, network, { browserName, headless, channel, launchOptions }) {
  const args = arguments_(network, browserName, launchOptions);
  const options = { headless, ...launchOptions, args };
  if (channel) options.channel = channel;
  return host.browser(browserName, options);
}

export const test = base.extend({
  scenario: [undefined, { option: true }],
  server: [undefined, { option: true }],
  weir: [process.env.WEIR ?? "weir", { option: true }],
  records: [undefined, { option: true }],
  seed: [1, { option: true }],

  network: async ({ scenario, server, weir, records, seed }, use, testInfo) => {
    if (!scenario) throw new Error("weir-network: name a scenario: test.use({ scenario: ... })");
    const network = await Network.open({ scenario, server, weir, records, seed });
    await use(network);
    for (const description of await network.close())
      testInfo.annotations.push({ type: "disturbed", description });
  },

  baseURL: async ({ baseURL, network }, use) => use(network.origin ?? baseURL),

  context: async (
    { network, browserName, headless, channel, launchOptions, contextOptions, baseURL },
    use,
  ) => {
    const options = { browserName, headless, channel, launchOptions };
    const browser = await browserOn(network.near, network, options);
    const context = await browser.newContext({ ...contextOptions, baseURL });
    await use(context);
    await browser.close();
  },

  far: async (
    { network, browserName, headless, channel, launchOptions, contextOptions, baseURL },
    use,
  ) => {
    const options = { browserName, headless, channel, launchOptions };
    const browser = await browserOn(network.far, network, options);
    const context = await browser.newContext({ ...contextOptions, baseURL });
    await use(await context.newPage());
    await browser.close();
  },
});
