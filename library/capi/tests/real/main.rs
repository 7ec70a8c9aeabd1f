//! Tests that install the library.

mod install;
