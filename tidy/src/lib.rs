//! Tests of the repository itself: what reviewers would otherwise have to look for in every change.
//! They read files and depend on no crate, so a change of a page recompiles nothing.
#![cfg(test)]

mod budget;
mod circles;
mod citations;
mod closures;
mod files;
mod named_files;
mod pages;
mod sentences;
mod tidy;
