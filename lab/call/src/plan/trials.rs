//! Experiments of libwebrtc that a run switches on in Chromium.

use weir_scenario::call::BrowserKind;

use super::{CallConfig, Player};

/// Feedback of RFC 8888 with ECN, in place of the transport-wide one.
const CCFB: &str = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";
/// SCReAM v2 in place of Google's congestion control.
const SCREAM_V2: &str = "WebRTC-Bwe-ScreamV2/Enabled,mode:always/";

/// The congestion control of Chromium, as a sender and as a receiver of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChromiumMode {
    /// Its default: GCC with transport-wide feedback.
    #[default]
    Default,
    /// GCC with the feedback of RFC 8888, which a pipeline asked for.
    Ccfb,
    /// SCReAM v2 with the feedback of RFC 8888.
    ScreamV2,
}

impl ChromiumMode {
    /// Chromium's argument; `None` if it needs none.
    pub(crate) fn argument(self) -> Option<String> {
        let trials = match self {
            Self::Default => return None,
            Self::Ccfb => CCFB.to_owned(),
            Self::ScreamV2 => format!("{CCFB}{SCREAM_V2}"),
        };
        Some(format!("--force-fieldtrials={trials}"))
    }
}

impl CallConfig {
    /// Changes the plan: Chromium sends under its own congestion control in this mode.
    ///
    /// # Errors
    /// One line, if an end of a call is not Chromium.
    pub fn with_chromium(mut self, mode: ChromiumMode) -> Result<Self, &'static str> {
        if !self.is_all_chromium() {
            return Err("this scenario has an end that is not Chromium: leave out --controller \
                        chromium and chromium-scream-v2");
        }
        self.chromium = mode;
        Ok(self)
    }

    /// Changes the plan: the cameras' frames are tagged, and the pages read the tags.
    ///
    /// # Errors
    /// One line, if a participant cannot do that.
    pub fn with_quality(mut self) -> Result<Self, &'static str> {
        // What a stack's encoder tells of its frames is in a file. A stack that receives from a
        // browser tells nothing.
        let sends_by_stack = self.calls.iter().all(|call| call.pipeline.is_some());
        for participant in &self.participants {
            let tells = match participant.player {
                Player::Stack => sends_by_stack,
                player => player.tells_of_frames(),
            };
            if !tells {
                return Err(
                    "--quality needs a browser or a pipeline at each end, or a stack that \
                            sends, without a server",
                );
            }
        }
        self.quality = true;
        Ok(self)
    }

    /// Whether all participants are Chromium.
    pub(super) fn is_all_chromium(&self) -> bool {
        self.participants.iter().all(|one| one.player == Player::Browser(BrowserKind::Chromium))
    }
}

#[cfg(test)]
mod tests {
    use weir_controllers::LabAlgorithm;
    use weir_scenario::{Scenario, parse};

    use super::*;

    fn scenario(call: &str) -> Scenario {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n";
        parse("x", &format!("{head}{call}[[flow]]\n"), None).unwrap()
    }

    fn plan(call: &str) -> CallConfig {
        CallConfig::of(&scenario(call), 1).unwrap()
    }

    #[test]
    fn chromium_alone_has_scream_v2() {
        assert_eq!(plan("").chromium.argument(), None);
        let changed = plan("").with_chromium(ChromiumMode::ScreamV2).unwrap();
        let argument = changed.chromium.argument().unwrap();
        assert_eq!(
            argument,
            "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/\
             WebRTC-Bwe-ScreamV2/Enabled,mode:always/"
        );
        let firefox = plan("[call]\nbrowser = { a = \"chromium\", b = \"firefox\" }\n");
        let error = firefox.with_chromium(ChromiumMode::ScreamV2).unwrap_err();
        assert!(error.contains("not Chromium"), "{error}");
    }

    #[test]
    fn browsers_and_pipelines_tell_of_frames_and_firefox_has_no_camera_tags() {
        let sluice = LabAlgorithm::Sluice.into();
        let to_chromium = plan("").with_pipelines(&scenario(""), &sluice).unwrap();
        assert_eq!(to_chromium.participants[0].player, Player::Pipeline);
        assert!(to_chromium.with_quality().unwrap().quality);
        let firefox = plan("[call]\nbrowser = { a = \"chromium\", b = \"firefox\" }\n");
        let has_tags = [0, 1].map(|index| firefox.participants[index].player.has_tags());
        assert_eq!(has_tags, [true, false]);
        assert!(firefox.with_quality().unwrap().quality);
    }
}
