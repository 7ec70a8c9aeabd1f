//! What follows from reports alone: values between two of them, good time, other controllers.

pub(crate) mod connectivity;
pub(crate) mod good_time;
pub(crate) mod open_loop;
pub(crate) mod samples;
pub(crate) mod seconds;
