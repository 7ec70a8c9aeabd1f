import { defineConfig } from "vitest/config";

// Pages with some forty plots, drawn and photographed on a machine with two cores, take a while.
export default defineConfig({ test: { testTimeout: 120_000, hookTimeout: 60_000 } });
