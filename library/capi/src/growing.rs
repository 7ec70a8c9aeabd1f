//! Structs that may grow while programs built with an older header keep running.
//!
//! Such a struct begins with `struct_size`, which the caller sets to the `sizeof` of its header.
//! New members come at the end. The library reads and writes only the members that both sides know.
//! A member that only the caller knows must be zero, so that nobody relies on an option that the
//! library does not have.

use crate::border::{Outcome, check_aligned};
use crate::status::weir_status;

/// Larger values of `struct_size` are taken for garbage.
const LARGEST: usize = 4_096;

/// A struct of the header that may grow.
///
/// # Safety
/// The type is `repr(C)`. Its first member is `struct_size: usize`. All others are integers,
/// floats, raw pointers, or arrays and structs of them, so that any bytes are a value.
pub(crate) unsafe trait Growing: Copy {
    /// Number of bytes up to the last member of the first version.
    const FIRST_SIZE: usize;

    /// The value of each member that the caller does not know.
    fn defaults() -> Self;
}

/// Implements [`Growing`] with the last member of the first version and the defaults.
macro_rules! growing {
    ($type:ident, $last:ident: $last_type:ty, $defaults:expr) => {
        // SAFETY: the macro is used only for structs that satisfy the trait's conditions.
        unsafe impl $crate::growing::Growing for $type {
            const FIRST_SIZE: usize = core::mem::offset_of!($type, $last) + size_of::<$last_type>();

            fn defaults() -> Self {
                $defaults
            }
        }
        // Bytes after the last member would become part of a member in a later version, although
        // callers never set them.
        const _: () = assert!(
            <$type as $crate::growing::Growing>::FIRST_SIZE == size_of::<$type>(),
            "fill the end of the struct with a reserved member"
        );
        const _: () = assert!(core::mem::offset_of!($type, struct_size) == 0);
    };
}
pub(crate) use growing;

/// Reads `struct_size`, and checks it.
unsafe fn size_of_callers<T: Growing>(pointer: *const T) -> Outcome<usize> {
    check_aligned(pointer)?;
    // SAFETY: the first member is `struct_size`, and the caller's struct has at least this one.
    let size = unsafe { pointer.cast::<usize>().read() };
    if (T::FIRST_SIZE..=LARGEST).contains(&size) { Ok(size) } else { Err(weir_status::StructSize) }
}

/// Reads a struct of the caller.
///
/// # Safety
/// The pointer is NULL or points to as many bytes as `struct_size` says, all of them initialized.
pub(crate) unsafe fn get<T: Growing>(pointer: *const T) -> Outcome<T> {
    // SAFETY: as this function requires.
    let size = unsafe { size_of_callers(pointer) }?;
    let known = size.min(size_of::<T>());
    let mut value = T::defaults();
    // SAFETY: both have at least `known` bytes, and any bytes are a value of T.
    unsafe {
        core::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast(), known);
    }
    // SAFETY: the caller's struct has `size` bytes.
    let unknown =
        unsafe { core::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|&byte| byte != 0) { Err(weir_status::StructSize) } else { Ok(value) }
}

/// Checks a struct that [`set`] will write. Only its size has to be there; the rest may be
/// uninitialized, and is not read.
///
/// # Safety
/// The pointer is NULL or points to a struct whose first member is set.
pub(crate) unsafe fn check_size<T: Growing>(pointer: *const T) -> Outcome {
    // SAFETY: as this function requires.
    unsafe { size_of_callers(pointer) }.map(|_| ())
}

/// Writes a struct of the caller. Members that only the caller knows become zero.
///
/// # Safety
/// The pointer is NULL or points to as many bytes as `struct_size` says, which may be written.
pub(crate) unsafe fn set<T: Growing>(pointer: *mut T, value: &T) -> Outcome {
    // SAFETY: as this function requires.
    let size = unsafe { size_of_callers(pointer) }?;
    let known = size.min(size_of::<T>());
    // SAFETY: both have at least `known` bytes, and the caller's has `size`.
    unsafe {
        let bytes = pointer.cast::<u8>();
        core::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>(), bytes, known);
        bytes.add(known).write_bytes(0, size - known);
        bytes.cast::<usize>().write(size);
    }
    Ok(())
}

/// Fills a struct of the caller with the defaults. `size` is its `sizeof`.
///
/// # Safety
/// The pointer is NULL or points to `size` bytes, which may be written.
pub(crate) unsafe fn init<T: Growing>(pointer: *mut T, size: usize) -> Outcome {
    check_aligned(pointer)?;
    if !(T::FIRST_SIZE..=LARGEST).contains(&size) {
        return Err(weir_status::StructSize);
    }
    // SAFETY: the caller's struct has `size` bytes, and so at least the first member.
    unsafe { pointer.cast::<usize>().write(size) };
    // SAFETY: `struct_size` is set.
    unsafe { set(pointer, &T::defaults()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A struct of the second version: `added` is new.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Second {
        struct_size: usize,
        first: u64,
        added: u64,
    }

    const FIRST_SIZE: usize = core::mem::offset_of!(Second, added);

    // SAFETY: it is `repr(C)`, begins with its size, and consists of integers.
    unsafe impl Growing for Second {
        const FIRST_SIZE: usize = FIRST_SIZE;

        fn defaults() -> Self {
            Self { struct_size: size_of::<Self>(), first: 1, added: 2 }
        }
    }

    /// The struct of a third version, which this library does not know.
    #[repr(C)]
    struct Third {
        known: Second,
        unknown: u64,
    }

    #[test]
    fn an_older_program_gets_defaults_for_what_it_does_not_know() {
        let mut old = Second { struct_size: FIRST_SIZE, first: 7, added: 99 };
        // SAFETY: the struct lives.
        unsafe {
            assert_eq!(get(&old), Ok(Second { struct_size: FIRST_SIZE, first: 7, added: 2 }));
            assert_eq!(set(&mut old, &Second { struct_size: 0, first: 8, added: 9 }), Ok(()));
        }
        assert_eq!(old, Second { struct_size: FIRST_SIZE, first: 8, added: 99 });
    }

    #[test]
    fn a_newer_program_may_not_use_what_the_library_lacks() {
        let mut new = Third { known: Second::defaults(), unknown: 5 };
        new.known.struct_size = size_of::<Third>();
        let pointer = (&raw mut new).cast::<Second>();
        // SAFETY: the struct lives and has as many bytes as it says.
        unsafe {
            assert_eq!(get(pointer), Err(weir_status::StructSize));
            assert_eq!(init(pointer, size_of::<Third>()), Ok(()));
            assert_eq!(get(pointer).map(|value| value.added), Ok(2));
        }
        assert_eq!((new.unknown, new.known.struct_size), (0, size_of::<Third>()));
    }

    /// Miri fails if a byte that C has not set is read.
    #[test]
    fn what_is_only_written_may_be_uninitialized_but_for_its_size() {
        let mut raw = core::mem::MaybeUninit::<Second>::uninit();
        // SAFETY: the struct lives, and its size is set before it is read.
        let value = unsafe {
            raw.as_mut_ptr().cast::<usize>().write(size_of::<Second>());
            assert_eq!(check_size(raw.as_ptr()), Ok(()));
            assert_eq!(set(raw.as_mut_ptr(), &Second::defaults()), Ok(()));
            raw.assume_init()
        };
        assert_eq!(value, Second::defaults());
    }

    #[test]
    fn a_size_that_no_version_has_is_an_error() {
        for size in [0, FIRST_SIZE - 1, LARGEST + 1, usize::MAX] {
            let garbage = Second { struct_size: size, first: 0, added: 0 };
            // SAFETY: the struct lives, and nothing beyond its size is read.
            assert_eq!(unsafe { get(&garbage) }, Err(weir_status::StructSize), "{size}");
        }
        // SAFETY: nothing is read.
        assert_eq!(unsafe { get::<Second>(core::ptr::null()) }, Err(weir_status::NullPointer));
    }
}
