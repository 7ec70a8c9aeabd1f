//! Born with its first code.
