//! The historical controllers under the public check of the library, and the receiver's half of
//! one of them under hostile packets.

mod receivers;

use weir::ControllerFactory;
use weir::testing::check_controller;
use weir_controllers::LabAlgorithm;

#[test]
fn the_historical_controllers_pass_the_public_check() {
    for algorithm in [LabAlgorithm::GccDraft, LabAlgorithm::Gcc2013] {
        let factory = ControllerFactory::new(algorithm.name(), move |it| algorithm.build(it));
        if let Err(failure) = check_controller(&factory, 16, 1) {
            panic!("{failure}");
        }
    }
}
