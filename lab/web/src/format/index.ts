// The report's data as the lab writes it: the contract between the Rust side and this page.
//
// Every number carries its unit in its name. `null` means that the value does not apply or that
// nobody measured it. Seeds are strings, because JavaScript loses integers above 2^53.
export type * from "./calls";
export type * from "./record";
export type * from "./report";
export type * from "./server";
export type * from "./signalling";
export type * from "./sweep";
