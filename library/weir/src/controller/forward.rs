//! Passes calls of [`Controller`](super::Controller) on to another controller.

/// Writes the methods of [`Controller`](crate::Controller) for a type that wraps a controller, each
/// of which passes its call on. A wrapper that is written by hand loses the calls that it forgets.
///
/// `change` and `read` name two methods of the type, which pass the inner controller to a closure.
/// Names after them ask for these methods alone: the wrapper writes the others itself.
/// `testing::check_wrapper` shows whether a wrapper passes on every call.
///
/// ```
/// use weir::{Bitrate, Controller, Target};
///
/// /// Asks for padding at the target.
/// struct Padded<C>(C);
///
/// impl<C> Padded<C> {
///     fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
///         work(&mut self.0)
///     }
///     fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
///         work(&self.0)
///     }
/// }
///
/// impl<C: Controller> Controller for Padded<C> {
///     weir::forward_controller!(change, read: on_media_queued on_packet_sent on_feedback
///         on_round_trip_time on_receiver_limit set_limits set_desired_bitrate on_route_change
///         on_shared_rate on_timeout next_timeout metrics);
///
///     fn target(&self) -> Target {
///         let target = self.0.target();
///         target.with_padding_rate(target.bitrate)
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_controller {
    ($change:ident, $read:ident) => {
        $crate::forward_controller!($change, $read: on_media_queued on_packet_sent on_feedback
            on_round_trip_time on_receiver_limit set_limits set_desired_bitrate on_route_change
            on_shared_rate on_timeout next_timeout target metrics);
    };
    ($change:ident, $read:ident: $($method:ident)+) => {
        $($crate::forward_controller!(@$method $change $read);)+
    };
    (@on_media_queued $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_media_queued
            added: $crate::DataSize, queued: $crate::DataSize);
    };
    (@on_packet_sent $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_packet_sent packet: &$crate::SentPacket);
    };
    (@on_feedback $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_feedback report: &$crate::FeedbackReport);
    };
    (@on_round_trip_time $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_round_trip_time rtt: $crate::TimeDelta);
    };
    (@on_receiver_limit $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_receiver_limit
            limit: ::core::option::Option<$crate::Bitrate>);
    };
    (@set_limits $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change set_limits limits: $crate::RateLimits);
    };
    (@set_desired_bitrate $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change set_desired_bitrate
            desired: ::core::option::Option<$crate::Bitrate>);
    };
    (@on_route_change $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_route_change);
    };
    (@on_shared_rate $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_shared_rate share: $crate::Bitrate);
    };
    (@on_timeout $change:ident $read:ident) => {
        $crate::forward_controller!(@change $change on_timeout);
    };
    (@next_timeout $change:ident $read:ident) => {
        $crate::forward_controller!(@read $read next_timeout
            -> ::core::option::Option<$crate::Timestamp>);
    };
    (@target $change:ident $read:ident) => {
        $crate::forward_controller!(@read $read target -> $crate::Target);
    };
    (@metrics $change:ident $read:ident) => {
        $crate::forward_controller!(@read $read metrics -> $crate::Metrics);
    };
    (@change $change:ident $method:ident $($name:ident: $type:ty),*) => {
        fn $method(&mut self, now: $crate::Timestamp, $($name: $type),*) {
            self.$change(|inner| $crate::Controller::$method(inner, now, $($name),*));
        }
    };
    (@read $read:ident $method:ident -> $type:ty) => {
        fn $method(&self) -> $type {
            self.$read(|inner| $crate::Controller::$method(inner))
        }
    };
}
