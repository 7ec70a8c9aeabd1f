//! The dictionary: code, vendor, type, flag M and section of each known AVP.

use crate::base::VENDOR_3GPP;

/// Type of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// OctetString.
    Octets,
    /// UTF8String, DiameterIdentity, DiameterURI or IPFilterRule.
    Text,
    /// Unsigned32 or Time.
    Unsigned32,
    /// Unsigned64.
    Unsigned64,
    /// Integer32 or Enumerated.
    Integer32,
    /// Address.
    Address,
    /// Grouped.
    Group,
}

/// An entry of the dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name in the standard.
    pub name: &'static str,
    /// Code.
    pub code: u32,
    /// Vendor, or none for codes of the IETF.
    pub vendor: Option<u32>,
    /// Type.
    pub kind: Kind,
    /// Whether the flag M is set.
    pub mandatory: bool,
    /// Standard and section.
    pub section: &'static str,
}

/// The definition of a code of a vendor.
pub fn definition(code: u32, vendor: Option<u32>) -> Option<&'static Definition> {
    let mut all = [BASE, ACCESS, CX, RX].into_iter().flatten();
    all.find(|definition| definition.code == code && definition.vendor == vendor)
}

/// Declares the constants of a standard, and the table of all of them.
macro_rules! dictionary {
    (
        $(#[$doc:meta])* $table:ident, $standard:literal, $vendor:expr;
        $(
            $constant:ident $code:literal $name:literal
            $kind:ident $mandatory:ident $section:literal
        )*
    ) => {
        $(
            #[doc = concat!("`", $name, "`, ", $standard, " ", $section, ".")]
            pub const $constant: Definition = Definition {
                name: $name,
                code: $code,
                vendor: $vendor,
                kind: Kind::$kind,
                mandatory: dictionary!(@ $mandatory),
                section: concat!($standard, " ", $section),
            };
        )*
        $(#[$doc])*
        pub const $table: &[Definition] = &[$($constant),*];
    };
    (@ M) => { true };
    (@ O) => { false };
}

dictionary! {
    /// AVPs of the base protocol.
    BASE, "RFC 6733", None;
    USER_NAME 1 "User-Name" Text M "8.14"
    CLASS 25 "Class" Octets M "8.20"
    SESSION_TIMEOUT 27 "Session-Timeout" Unsigned32 M "8.13"
    PROXY_STATE 33 "Proxy-State" Octets M "6.7.4"
    EVENT_TIMESTAMP 55 "Event-Timestamp" Unsigned32 M "8.21"
    HOST_IP_ADDRESS 257 "Host-IP-Address" Address M "5.3.5"
    AUTH_APPLICATION_ID 258 "Auth-Application-Id" Unsigned32 M "6.8"
    ACCT_APPLICATION_ID 259 "Acct-Application-Id" Unsigned32 M "6.9"
    VENDOR_SPECIFIC_APPLICATION_ID 260 "Vendor-Specific-Application-Id" Group M "6.11"
    REDIRECT_HOST_USAGE 261 "Redirect-Host-Usage" Integer32 M "6.13"
    REDIRECT_MAX_CACHE_TIME 262 "Redirect-Max-Cache-Time" Unsigned32 M "6.14"
    SESSION_ID 263 "Session-Id" Text M "8.8"
    ORIGIN_HOST 264 "Origin-Host" Text M "6.3"
    SUPPORTED_VENDOR_ID 265 "Supported-Vendor-Id" Unsigned32 M "5.3.6"
    VENDOR_ID 266 "Vendor-Id" Unsigned32 M "5.3.3"
    FIRMWARE_REVISION 267 "Firmware-Revision" Unsigned32 O "5.3.4"
    RESULT_CODE 268 "Result-Code" Unsigned32 M "7.1"
    PRODUCT_NAME 269 "Product-Name" Text O "5.3.7"
    SESSION_BINDING 270 "Session-Binding" Unsigned32 M "8.17"
    SESSION_SERVER_FAILOVER 271 "Session-Server-Failover" Integer32 M "8.18"
    MULTI_ROUND_TIME_OUT 272 "Multi-Round-Time-Out" Unsigned32 M "8.19"
    DISCONNECT_CAUSE 273 "Disconnect-Cause" Integer32 M "5.4.3"
    AUTH_REQUEST_TYPE 274 "Auth-Request-Type" Integer32 M "8.7"
    AUTH_GRACE_PERIOD 276 "Auth-Grace-Period" Unsigned32 M "8.10"
    AUTH_SESSION_STATE 277 "Auth-Session-State" Integer32 M "8.11"
    ORIGIN_STATE_ID 278 "Origin-State-Id" Unsigned32 M "8.16"
    FAILED_AVP 279 "Failed-AVP" Group M "7.5"
    PROXY_HOST 280 "Proxy-Host" Text M "6.7.3"
    ERROR_MESSAGE 281 "Error-Message" Text O "7.3"
    ROUTE_RECORD 282 "Route-Record" Text M "6.7.1"
    DESTINATION_REALM 283 "Destination-Realm" Text M "6.6"
    PROXY_INFO 284 "Proxy-Info" Group M "6.7.2"
    RE_AUTH_REQUEST_TYPE 285 "Re-Auth-Request-Type" Integer32 M "8.12"
    AUTHORIZATION_LIFETIME 291 "Authorization-Lifetime" Unsigned32 M "8.9"
    REDIRECT_HOST 292 "Redirect-Host" Text M "6.12"
    DESTINATION_HOST 293 "Destination-Host" Text M "6.5"
    ERROR_REPORTING_HOST 294 "Error-Reporting-Host" Text O "7.4"
    TERMINATION_CAUSE 295 "Termination-Cause" Integer32 M "8.15"
    ORIGIN_REALM 296 "Origin-Realm" Text M "6.4"
    EXPERIMENTAL_RESULT 297 "Experimental-Result" Group M "7.6"
    EXPERIMENTAL_RESULT_CODE 298 "Experimental-Result-Code" Unsigned32 M "7.7"
    INBAND_SECURITY_ID 299 "Inband-Security-Id" Unsigned32 M "6.10"
}

dictionary! {
    /// AVPs of network access, credit control and SIP that Cx and Rx use.
    ACCESS, "RFC 7155, 8506 and 4740:", None;
    FRAMED_IP_ADDRESS 8 "Framed-IP-Address" Octets M "4.4.10.5.1"
    CALLED_STATION_ID 30 "Called-Station-Id" Text M "4.2.5"
    FRAMED_IPV6_PREFIX 97 "Framed-IPv6-Prefix" Octets M "4.4.10.5.6"
    DIGEST_REALM 104 "Digest-Realm" Text M "9.5.6.2"
    DIGEST_QOP 110 "Digest-QoP" Text M "9.5.6.5"
    DIGEST_ALGORITHM 111 "Digest-Algorithm" Text M "9.5.6.6"
    DIGEST_HA1 121 "Digest-HA1" Text M "9.5.6.8"
    SUBSCRIPTION_ID 443 "Subscription-Id" Group M "8.46"
    SUBSCRIPTION_ID_DATA 444 "Subscription-Id-Data" Text M "8.48"
    SUBSCRIPTION_ID_TYPE 450 "Subscription-Id-Type" Integer32 M "8.47"
}

dictionary! {
    /// AVPs of Cx.
    CX, "TS 29.229", Some(VENDOR_3GPP);
    VISITED_NETWORK_IDENTIFIER 600 "Visited-Network-Identifier" Octets M "6.3.1"
    PUBLIC_IDENTITY 601 "Public-Identity" Text M "6.3.2"
    SERVER_NAME 602 "Server-Name" Text M "6.3.3"
    SERVER_CAPABILITIES 603 "Server-Capabilities" Group M "6.3.4"
    MANDATORY_CAPABILITY 604 "Mandatory-Capability" Unsigned32 M "6.3.5"
    OPTIONAL_CAPABILITY 605 "Optional-Capability" Unsigned32 M "6.3.6"
    USER_DATA 606 "User-Data" Octets M "6.3.7"
    SIP_NUMBER_AUTH_ITEMS 607 "SIP-Number-Auth-Items" Unsigned32 M "6.3.8"
    SIP_AUTHENTICATION_SCHEME 608 "SIP-Authentication-Scheme" Text M "6.3.9"
    SIP_AUTHENTICATE 609 "SIP-Authenticate" Octets M "6.3.10"
    SIP_AUTHORIZATION 610 "SIP-Authorization" Octets M "6.3.11"
    SIP_AUTHENTICATION_CONTEXT 611 "SIP-Authentication-Context" Octets M "6.3.12"
    SIP_AUTH_DATA_ITEM 612 "SIP-Auth-Data-Item" Group M "6.3.13"
    SIP_ITEM_NUMBER 613 "SIP-Item-Number" Unsigned32 M "6.3.14"
    SERVER_ASSIGNMENT_TYPE 614 "Server-Assignment-Type" Integer32 M "6.3.15"
    DEREGISTRATION_REASON 615 "Deregistration-Reason" Group M "6.3.16"
    REASON_CODE 616 "Reason-Code" Integer32 M "6.3.17"
    REASON_INFO 617 "Reason-Info" Text M "6.3.18"
    CHARGING_INFORMATION 618 "Charging-Information" Group M "6.3.19"
    PRIMARY_EVENT_CHARGING_FUNCTION_NAME 619 "Primary-Event-Charging-Function-Name" Text M "6.3.20"
    SECONDARY_EVENT_CHARGING_FUNCTION_NAME 620 "Secondary-Event-Charging-Function-Name"
        Text M "6.3.21"
    PRIMARY_CHARGING_COLLECTION_FUNCTION_NAME 621 "Primary-Charging-Collection-Function-Name"
        Text M "6.3.22"
    SECONDARY_CHARGING_COLLECTION_FUNCTION_NAME 622 "Secondary-Charging-Collection-Function-Name"
        Text M "6.3.23"
    USER_AUTHORIZATION_TYPE 623 "User-Authorization-Type" Integer32 M "6.3.24"
    USER_DATA_ALREADY_AVAILABLE 624 "User-Data-Already-Available" Integer32 M "6.3.26"
    CONFIDENTIALITY_KEY 625 "Confidentiality-Key" Octets M "6.3.27"
    INTEGRITY_KEY 626 "Integrity-Key" Octets M "6.3.28"
    SUPPORTED_FEATURES 628 "Supported-Features" Group O "6.3.29"
    FEATURE_LIST_ID 629 "Feature-List-ID" Unsigned32 O "6.3.30"
    FEATURE_LIST 630 "Feature-List" Unsigned32 O "6.3.31"
    ASSOCIATED_IDENTITIES 632 "Associated-Identities" Group O "6.3.33"
    ORIGINATING_REQUEST 633 "Originating-Request" Integer32 M "6.3.34"
    WILDCARDED_PUBLIC_IDENTITY 634 "Wildcarded-Public-Identity" Text O "6.3.35"
    SIP_DIGEST_AUTHENTICATE 635 "SIP-Digest-Authenticate" Group O "6.3.36"
    UAR_FLAGS 637 "UAR-Flags" Unsigned32 O "6.3.44"
}

dictionary! {
    /// AVPs of Rx.
    RX, "TS 29.214", Some(VENDOR_3GPP);
    ABORT_CAUSE 500 "Abort-Cause" Integer32 M "5.3.1"
    ACCESS_NETWORK_CHARGING_ADDRESS 501 "Access-Network-Charging-Address" Address M "5.3.2"
    ACCESS_NETWORK_CHARGING_IDENTIFIER 502 "Access-Network-Charging-Identifier" Group M "5.3.3"
    ACCESS_NETWORK_CHARGING_IDENTIFIER_VALUE 503 "Access-Network-Charging-Identifier-Value"
        Octets M "5.3.4"
    AF_APPLICATION_IDENTIFIER 504 "AF-Application-Identifier" Octets M "5.3.5"
    AF_CHARGING_IDENTIFIER 505 "AF-Charging-Identifier" Octets M "5.3.6"
    FLOW_DESCRIPTION 507 "Flow-Description" Text M "5.3.8"
    FLOW_NUMBER 509 "Flow-Number" Unsigned32 M "5.3.9"
    FLOWS 510 "Flows" Group M "5.3.10"
    FLOW_STATUS 511 "Flow-Status" Integer32 M "5.3.11"
    FLOW_USAGE 512 "Flow-Usage" Integer32 M "5.3.12"
    SPECIFIC_ACTION 513 "Specific-Action" Integer32 M "5.3.13"
    MAX_REQUESTED_BANDWIDTH_DL 515 "Max-Requested-Bandwidth-DL" Unsigned32 M "5.3.14"
    MAX_REQUESTED_BANDWIDTH_UL 516 "Max-Requested-Bandwidth-UL" Unsigned32 M "5.3.15"
    MEDIA_COMPONENT_DESCRIPTION 517 "Media-Component-Description" Group M "5.3.16"
    MEDIA_COMPONENT_NUMBER 518 "Media-Component-Number" Unsigned32 M "5.3.17"
    MEDIA_SUB_COMPONENT 519 "Media-Sub-Component" Group M "5.3.18"
    MEDIA_TYPE 520 "Media-Type" Integer32 M "5.3.19"
    RR_BANDWIDTH 521 "RR-Bandwidth" Unsigned32 M "5.3.20"
    RS_BANDWIDTH 522 "RS-Bandwidth" Unsigned32 M "5.3.21"
    SIP_FORKING_INDICATION 523 "SIP-Forking-Indication" Integer32 M "5.3.22"
    CODEC_DATA 524 "Codec-Data" Octets M "5.3.7"
    SERVICE_URN 525 "Service-URN" Octets M "5.3.23"
    ACCEPTABLE_SERVICE_INFO 526 "Acceptable-Service-Info" Group M "5.3.24"
    SERVICE_INFO_STATUS 527 "Service-Info-Status" Integer32 M "5.3.25"
    AF_SIGNALLING_PROTOCOL 529 "AF-Signalling-Protocol" Integer32 O "5.3.26"
    RX_REQUEST_TYPE 533 "Rx-Request-Type" Integer32 O "5.3.31"
    MIN_REQUESTED_BANDWIDTH_DL 534 "Min-Requested-Bandwidth-DL" Unsigned32 O "5.3.32"
    MIN_REQUESTED_BANDWIDTH_UL 535 "Min-Requested-Bandwidth-UL" Unsigned32 O "5.3.33"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_of_a_vendor_has_one_definition() {
        for table in [BASE, ACCESS, CX, RX] {
            for entry in table {
                assert_eq!(definition(entry.code, entry.vendor), Some(entry), "{}", entry.name);
            }
        }
        assert_eq!(definition(265, Some(VENDOR_3GPP)), None);
    }
}
