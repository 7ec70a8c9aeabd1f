//! Marks where the work of one part ends and that of another begins.
//!
//! `scripts/results/camera-instructions.sh` counts the instructions between the marks. It finds
//! them by the names of their functions, so a mark does nothing but to be called. It costs about
//! five instructions.

use std::cell::Cell;

use weir::Controller;

/// What the program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// None of the parts below: sockets, waiting, the simulated network.
    Other,
    /// Makes pictures.
    Picture,
    /// Encodes them.
    Encoder,
    /// Makes RTP packets.
    Packetizer,
    /// Queue, pacer and send history.
    Pacer,
    /// Reads RTCP, joins it with the send history and writes sender reports.
    Feedback,
    /// The congestion controller.
    Controller,
}

thread_local! {
    static CURRENT: Cell<Part> = const { Cell::new(Part::Other) };
}

/// Defines the functions that the counter looks for. Each has a body of its own, as the linker
/// merges functions with equal bodies.
macro_rules! marks {
    ($($name:ident: $part:ident,)*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name() {
                std::hint::black_box(Part::$part);
            }
        )*
        fn mark(part: Part) {
            match part { $(Part::$part => $name(),)* }
        }
    };
}
marks! {
    mark_other: Other,
    mark_picture: Picture,
    mark_encoder: Encoder,
    mark_packetizer: Packetizer,
    mark_pacer: Pacer,
    mark_feedback: Feedback,
    mark_controller: Controller,
}

/// Does work that counts towards a part. The work may contain work of other parts.
pub fn within<T>(part: Part, work: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(part);
    mark(part);
    let result = work();
    CURRENT.set(before);
    mark(before);
    result
}

/// A controller whose work counts towards [`Part::Controller`].
pub struct Marked<C>(pub C);

impl<C> Marked<C> {
    fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
        within(Part::Controller, || work(&mut self.0))
    }

    fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
        within(Part::Controller, || work(&self.0))
    }
}

impl<C: Controller> Controller for Marked<C> {
    weir::forward_controller!(change, read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_controller_gets_every_call() {
        weir::testing::check_wrapper(Marked).unwrap();
    }

    #[test]
    fn after_inner_work_the_outer_part_goes_on() {
        within(Part::Pacer, || {
            within(Part::Controller, || assert_eq!(CURRENT.get(), Part::Controller));
            assert_eq!(CURRENT.get(), Part::Pacer);
        });
        assert_eq!(CURRENT.get(), Part::Other);
    }
}
