//! The controllers that only the lab has under the public check of the library, and the receiver's
//! half of one of them under hostile packets.

mod receivers;

use weir::ControllerFactory;
use weir::testing::check_controller;
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
