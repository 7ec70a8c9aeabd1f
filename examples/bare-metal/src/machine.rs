//! The machine, a Cortex-M4: start, stack, output and end.
//!
//! Output goes through semihosting: a debugger, or qemu, reads it from the memory of the program.

use core::arch::{asm, naked_asm};
use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::panic::PanicInfo;

/// Size of the stack in bytes.
const STACK_SIZE: usize = 32 * 1024;

/// Semihosting operations.
const SYS_WRITE0: u32 = 0x04;
const SYS_EXIT: u32 = 0x18;
/// Reasons for the end of the program.
const STOPPED_RUN_TIME_ERROR: usize = 0x2_0023;
const STOPPED_APPLICATION_EXIT: usize = 0x2_0026;

#[repr(C, align(8))]
struct Stack(UnsafeCell<[u8; STACK_SIZE]>);
// SAFETY: there is one thread. `stack_used` only reads.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_SIZE]));

unsafe extern "Rust" {
    fn program();
}

/// The first entries of the table that the processor reads at its start: stack pointer, first
/// instruction, and the handlers of faults.
#[repr(C)]
struct Vectors {
    stack: *const u8,
    handlers: [unsafe extern "C" fn() -> !; 6],
}
// SAFETY: nothing changes the table.
unsafe impl Sync for Vectors {}

#[used]
#[unsafe(link_section = ".vectors")]
static VECTORS: Vectors = Vectors {
    stack: (&raw const STACK).cast::<u8>().wrapping_add(STACK_SIZE),
    handlers: [start, on_fault, on_fault, on_fault, on_fault, on_fault],
};

/// Switches on the floating-point unit, before any function can use it: full access to coprocessors
/// 10 and 11 in the register CPACR (Armv7-M Architecture Reference Manual, B3.2.20).
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn start() -> ! {
    naked_asm!(
        "ldr r0, =0xe000ed88",
        "ldr r1, [r0]",
        "orr r1, r1, #0xf00000",
        "str r1, [r0]",
        "dsb",
        "isb",
        "b {main}",
        main = sym main,
    )
}

unsafe extern "C" fn on_fault() -> ! {
    panic!("fault")
}

extern "C" fn main() -> ! {
    crate::heap::start();
    // SAFETY: each program defines the function with `program!`.
    unsafe { program() };
    semihosting(SYS_EXIT, STOPPED_APPLICATION_EXIT);
    unreachable!("the program has ended")
}

fn semihosting(operation: u32, argument: usize) {
    // SAFETY: both operations only read memory: a text that ends with zero, or nothing.
    unsafe { asm!("bkpt 0xab", inlateout("r0") operation => _, in("r1") argument) };
}

/// Bytes of the stack that have been used: from the first byte that is not zero.
pub fn stack_used() -> usize {
    // SAFETY: the bytes are valid, and the volatile reads cannot be moved.
    let is_unused =
        |index: &usize| unsafe { STACK.0.get().cast::<u8>().add(*index).read_volatile() } == 0;
    STACK_SIZE - (0..STACK_SIZE).take_while(is_unused).count()
}

/// Text output.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(63) {
            let mut line = [0; 64];
            line[..part.len()].copy_from_slice(part);
            semihosting(SYS_WRITE0, line.as_ptr() as usize);
        }
        Ok(())
    }
}

#[panic_handler]
fn on_panic(info: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    semihosting(SYS_EXIT, STOPPED_RUN_TIME_ERROR);
    loop {}
}
