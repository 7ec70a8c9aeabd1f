import { defineConfig } from "vitest/config";

// Pages with some forty plots, drawn and photographed on a machine with two cores, take a while. Without a number of
// workers, one core of two stays idle.
export default defineConfig({ test: { maxWorkers: 2, testTimeout: 120_000, hookTimeout: 60_000 } });
