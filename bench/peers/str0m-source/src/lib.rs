//! Empty: only its manifest is of use.
