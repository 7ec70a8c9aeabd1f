//! Nothing: this package only names the one that is built.
