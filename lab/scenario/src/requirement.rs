//! The requirements of RFC 8836 that an expectation can refer to.

/// Number and short text of each requirement [RFC8836 §2].
///
/// [RFC8836 §2]: https://www.rfc-editor.org/rfc/rfc8836#section-2
pub const REQUIREMENTS: &[(&str, &str)] = &[
    ("1", "delay as low as a useful rate allows"),
    ("1a", "counts jitter as delay"),
    ("1b", "keeps its own delay low, also beside others"),
    ("1c", "follows a change of the path within about a second"),
    ("1d", "survives a change of the interface"),
    ("1e", "copes with application-limited and on/off sources"),
    ("1f", "no lasting queue from short bursts of others"),
    ("1g", "does not worsen the delay that bursty streaming causes"),
    ("2", "fair to media and to TCP"),
    ("2a", "lets newcomers ramp up"),
    ("3", "neither starves TCP nor is starved"),
    ("4", "starts fast"),
    ("5", "stable with streams that halt"),
    ("5a", "regains its share after a pause"),
    ("6", "shares what it knows among streams"),
    ("7", "needs no special support of the network"),
    ("8", "takes RTCP as the back channel"),
    ("10", "takes missing feedback for congestion"),
    ("11", "stable and of low delay under AQM"),
];
