import { defineConfig } from "@playwright/test";

// Debian's Chromium. Without this, Playwright takes the one that it has downloaded.
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "test",
  timeout: 60_000,
  // A network at a time: two calls would disturb each other.
  workers: 1,
  expect: { timeout: 20_000 },
  reporter: "list",
  use: { launchOptions: { executablePath } },
});
