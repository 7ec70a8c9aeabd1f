//! Numbers of commands, applications, vendors and results.

/// Vendor 3GPP.
pub const VENDOR_3GPP: u32 = 10415;

/// Application of messages between neighbours.
pub const COMMON: u32 = 0;
/// Application Cx ([TS 29.229 §6]).
pub const CX: u32 = 16_777_216;
/// Application Rx ([TS 29.214 §5.1]).
pub const RX: u32 = 16_777_236;

/// CER and CEA ([RFC6733 §5.3]).
pub const CAPABILITIES_EXCHANGE: u32 = 257;
/// RAR and RAA ([RFC6733 §8.3.1]).
pub const RE_AUTH: u32 = 258;
/// AAR and AAA ([TS 29.214 §5.6.1]).
pub const AA: u32 = 265;
/// ASR and ASA ([RFC6733 §8.5.1]).
pub const ABORT_SESSION: u32 = 274;
/// STR and STA ([RFC6733 §8.4.1]).
pub const SESSION_TERMINATION: u32 = 275;
/// DWR and DWA ([RFC6733 §5.5.1]).
pub const DEVICE_WATCHDOG: u32 = 280;
/// DPR and DPA ([RFC6733 §5.4.1]).
pub const DISCONNECT_PEER: u32 = 282;
/// UAR and UAA ([TS 29.229 §6.1.1]).
pub const USER_AUTHORIZATION: u32 = 300;
/// SAR and SAA ([TS 29.229 §6.1.3]).
pub const SERVER_ASSIGNMENT: u32 = 301;
/// LIR and LIA ([TS 29.229 §6.1.5]).
pub const LOCATION_INFO: u32 = 302;
/// MAR and MAA ([TS 29.229 §6.1.7]).
pub const MULTIMEDIA_AUTH: u32 = 303;

/// The request was carried out ([RFC6733 §7.1.2]).
pub const SUCCESS: u32 = 2001;
/// The command is not known ([RFC6733 §7.1.3]).
pub const COMMAND_UNSUPPORTED: u32 = 3001;
/// No route to the destination ([RFC6733 §7.1.3]).
pub const UNABLE_TO_DELIVER: u32 = 3002;
/// The application is not known ([RFC6733 §7.1.3]).
pub const APPLICATION_UNSUPPORTED: u32 = 3007;
/// The sender is no known peer ([RFC6733 §7.1.3]).
pub const UNKNOWN_PEER: u32 = 3010;
/// No such session ([RFC6733 §7.1.5]).
pub const UNKNOWN_SESSION_ID: u32 = 5002;
/// The value of an AVP is not of its type ([RFC6733 §7.1.5]).
pub const INVALID_AVP_VALUE: u32 = 5004;
/// A required AVP is missing ([RFC6733 §7.1.5]).
pub const MISSING_AVP: u32 = 5005;
/// The peers have no application in common ([RFC6733 §7.1.5]).
pub const NO_COMMON_APPLICATION: u32 = 5010;
/// The version is not 1 ([RFC6733 §7.1.5]).
pub const UNSUPPORTED_VERSION: u32 = 5011;
/// The request cannot be carried out now ([RFC6733 §7.1.5]).
pub const UNABLE_TO_COMPLY: u32 = 5012;
/// The length of an AVP is not possible ([RFC6733 §7.1.5]).
pub const INVALID_AVP_LENGTH: u32 = 5014;
/// The length of the message is not possible ([RFC6733 §7.1.5]).
pub const INVALID_MESSAGE_LENGTH: u32 = 5015;

/// The three letters by which the standards call a command, such as `AAR`.
pub fn command_name(command: u32, is_request: bool) -> Option<&'static str> {
    let (request, answer) = match command {
        CAPABILITIES_EXCHANGE => ("CER", "CEA"),
        RE_AUTH => ("RAR", "RAA"),
        AA => ("AAR", "AAA"),
        ABORT_SESSION => ("ASR", "ASA"),
        SESSION_TERMINATION => ("STR", "STA"),
        DEVICE_WATCHDOG => ("DWR", "DWA"),
        DISCONNECT_PEER => ("DPR", "DPA"),
        USER_AUTHORIZATION => ("UAR", "UAA"),
        SERVER_ASSIGNMENT => ("SAR", "SAA"),
        LOCATION_INFO => ("LIR", "LIA"),
        MULTIMEDIA_AUTH => ("MAR", "MAA"),
        _ => return None,
    };
    Some(if is_request { request } else { answer })
}
