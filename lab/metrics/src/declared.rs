//! Tables of metrics. Each metric of a summary is declared once: its unit, its meaning, whether
//! higher or lower is better, and what a flow needs to have it.
//!
//! `declare!` turns a table into the struct that a summary contains and a list of declarations.
//! The metric names that scenarios and `weir compare` accept, the definitions in the report, and
//! the tables of `docs/reference/record-format.md` are derived from it.

use std::collections::BTreeMap;

/// Which of two values of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The higher one.
    Higher,
    /// The lower one.
    Lower,
    /// Neither: the metric describes what happened, not how good it is.
    Neither,
}

/// Condition under which a metric has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The flow is a media flow, so it has a controller and feedback.
    Media,
    /// The flow is a media flow with `repair`, so its receiver shows the video.
    Repair,
    /// The flow is a media flow with `quality`, so what is seen is measured.
    Quality,
    /// The same, or the flow is a subscriber of a forwarding server, whose pictures are judged.
    Watched,
    /// The flow is an audio flow with `quality`, so what is heard is measured.
    Speech,
    /// The flow is a TCP flow.
    Tcp,
    /// A bottleneck on the flow's path has a limited capacity.
    Capacity,
    /// That capacity changes.
    Change,
    /// At least two media flows have the direction of the first flow.
    Rivals,
    /// The flow is a subscriber of a forwarding server.
    Server,
}

/// Declaration of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Dotted path: `rtt_ms` stands for `rtt_ms.mean` and all other values below it. Metrics that
    /// do not belong to a flow begin with `link.`, `fairness.`, `cell.NODE.`, `terminal.NAME.`,
    /// `calls.` or `participant.`.
    pub path: &'static str,
    /// Name in plots and tables. If it is empty, they show the path, or they do not show the
    /// metric.
    pub title: &'static str,
    /// Unit; `ratio` for a share, empty for a count.
    pub unit: &'static str,
    /// Meaning, in full sentences.
    pub meaning: &'static str,
    /// Difference in a real call; empty if there is none.
    pub in_call: &'static str,
    /// The values below the path; none if the metric is a single value.
    pub parts: &'static [&'static str],
    /// Whether higher or lower is better.
    pub better: Better,
    /// Conditions for a value.
    pub needs: &'static [Need],
}

/// Declares metrics. The doc comment of a member is its meaning. `with` names further structs of
/// metrics whose members a summary also contains.
macro_rules! declare {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $prefix:literal {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($($serde:tt)*)])?
                $member:ident: $type:ty = $unit:literal, $better:ident, [$($need:ident),*]
                    $(, title: $title:literal)? $(, call: $in_call:literal)?;
            )+
        }
        $(with {
            $(
                $(#[doc = $note:literal])+
                $part:ident: $part_type:ty;
            )+
        })?
    ) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                $(#[serde($($serde)*)])?
                pub $member: $type,
            )+
            $($(
                $(#[doc = $note])+
                #[serde(flatten)]
                pub $part: $part_type,
            )+)?
        }

        impl $crate::declared::Shape for $name {
            fn full() -> Self {
                Self {
                    $($member: $crate::declared::Shape::full(),)+
                    $($($part: $crate::declared::Shape::full(),)+)?
                }
            }

            fn at(&self, path: &str) -> Option<f64> {
                #[allow(unused_imports, reason = "a struct may have no members or no parts")]
                use $crate::declared::{Shape, first_key};
                let (key, rest) = first_key(path);
                match key {
                    $(stringify!($member) => return self.$member.at(rest),)+
                    _ => {}
                }
                $($(if let Some(value) = Shape::at(&self.$part, path) {
                    return Some(value);
                })+)?
                None
            }
        }

        impl $name {
            /// Declaration of each metric.
            pub const DECLARED: &[$crate::Declared] = &[$(
                $crate::Declared {
                    path: concat!($prefix, stringify!($member)),
                    title: concat!($($title)?),
                    unit: $unit,
                    meaning: concat!($($meaning),+),
                    in_call: concat!($($in_call)?),
                    parts: <$type as $crate::declared::Shape>::PARTS,
                    better: $crate::Better::$better,
                    needs: &[$($crate::Need::$need),*],
                },
            )+];
        }
    };
}
pub(crate) use declare;

/// A value of a summary.
pub trait Shape {
    /// Names of the values below it; empty for a single value.
    const PARTS: &[&str] = &[];
    /// A value with all its parts, to look up paths in.
    fn full() -> Self;
    /// The number at a dotted path below it; `None` if it is not finite, was not measured, or if
    /// the path names nothing.
    fn at(&self, path: &str) -> Option<f64>;
}

/// The first key of a dotted path, and the path below it.
pub fn first_key(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or((path, ""))
}

/// Implements [`Shape`] for a struct of numbers.
macro_rules! shape {
    ($name:ident: $($part:ident),+) => {
        impl $crate::declared::Shape for $name {
            const PARTS: &[&str] = &[$(stringify!($part)),+];

            fn full() -> Self {
                Self { $($part: 0.0),+ }
            }

            fn at(&self, path: &str) -> Option<f64> {
                match path {
                    $(stringify!($part) => $crate::declared::Shape::at(&self.$part, ""),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use shape;

impl Shape for f64 {
    fn full() -> Self {
        0.0
    }

    fn at(&self, path: &str) -> Option<f64> {
        (path.is_empty() && self.is_finite()).then_some(*self)
    }
}

impl Shape for u64 {
    fn full() -> Self {
        0
    }

    fn at(&self, path: &str) -> Option<f64> {
        path.is_empty().then_some(*self as f64)
    }
}

impl<T: Shape> Shape for Option<T> {
    const PARTS: &[&str] = T::PARTS;

    fn full() -> Self {
        Some(T::full())
    }

    fn at(&self, path: &str) -> Option<f64> {
        self.as_ref()?.at(path)
    }
}

/// A value for each bottleneck, by its number.
impl Shape for BTreeMap<String, f64> {
    const PARTS: &[&str] = &["1", "2"];

    fn full() -> Self {
        Self::new()
    }

    fn at(&self, path: &str) -> Option<f64> {
        self.get(path)?.at("")
    }
}
