//! The controllers that only the lab has under the public check of the library, and the receiver's
//! half of one of them under hostile packets.

mod receivers;

use weir::ControllerFactory;
use weir::testing::{check_controller, check_links};
use weir_controllers::LabAlgorithm;

#[test]
fn the_controllers_of_the_lab_pass_the_public_check() {
    for algorithm in LabAlgorithm::named().filter(|it| it.of_library().is_none()) {
        let factory = ControllerFactory::new(algorithm.name(), move |it| algorithm.build(it));
        if let Err(failure) = check_controller(&factory, 16, 1) {
            panic!("{failure}");
        }
    }
}

// They are as their documents are, which are not made for the ends of the ranges: what must hold is
// the contract.
#[test]
fn the_controllers_of_the_lab_break_no_rule_on_links_of_any_rate_clock_and_feedback() {
    for algorithm in LabAlgorithm::named().filter(|it| it.of_library().is_none()) {
        let factory = ControllerFactory::new(algorithm.name(), move |it| algorithm.build(it));
        if let Err(failure) = check_links(&factory, 4, 1, 0.0) {
            panic!("{failure}");
        }
    }
}
