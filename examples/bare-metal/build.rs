//! Passes the memory map to the linker.

fn main() {
    println!("cargo:rerun-if-changed=memory.ld");
    println!("cargo:rustc-link-arg-bins=-T{}/memory.ld", env!("CARGO_MANIFEST_DIR"));
}
