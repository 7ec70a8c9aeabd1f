// The example's own way into its room. It is here because playwright-core is looked for beside it.
export { default } from "../../examples/sfu/join.mjs";
