//! Changes the plan to calls whose senders are pipelines under a controller.

use weir::controller::EcnMode;
use weir::units::Bitrate;
use weir_controllers::{LabAlgorithm, LabController};
use weir_scenario::call::{Codec, Degradation, degradation_name};
use weir_scenario::{Feedback, Flow, Scenario};

use super::{Call, CallConfig, ChromiumMode, PlanResult, Player, Unplayable};
use crate::message::Peer;
use crate::peers::janus::ForwardingRole;
use crate::peers::stack::{FeedbackKind, Stack};

/// The controller of a pipeline that sends the video of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlledSender {
    /// The end that sends.
    pub peer: Peer,
    /// Name of the controller.
    pub controller: String,
    /// Smallest target bitrate.
    pub min: Bitrate,
    /// Target bitrate at the start.
    pub start: Bitrate,
    /// Largest target bitrate.
    pub max: Bitrate,
    /// Whether the feedback is that of RFC 8888. It is transport-wide otherwise.
    pub ccfb: bool,
    /// What its packets say about ECN.
    pub ecn: EcnMode,
}

/// What takes the place of the sending browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderKind {
    Pipeline,
    Stack,
}

impl SenderKind {
    /// Several of them, for messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Pipeline => "pipelines",
            Self::Stack => "stacks of the arena",
        }
    }

    /// The option that asks for them.
    const fn option(self) -> &'static str {
        match self {
            Self::Pipeline => "--controller",
            Self::Stack => "--stack",
        }
    }
}

impl CallConfig {
    /// Changes the plan: each video is sent by a pipeline under `controller`, or under the
    /// controller that its flow names, and received by a browser.
    ///
    /// # Errors
    /// One line, if pipelines cannot play the scenario.
    pub fn with_pipelines(
        mut self,
        scenario: &Scenario,
        controller: &LabController,
    ) -> Result<Self, Unplayable> {
        match self.put_senders(scenario, controller, SenderKind::Pipeline) {
            Ok(()) => Ok(self),
            Err(why) => Err(Unplayable { scenario: scenario.id.clone(), why }),
        }
    }

    /// Changes the plan: each video is sent by `stack`, which controls its rate itself, and
    /// received by a browser, or by the same stack if that is at both ends.
    ///
    /// # Errors
    /// One line, if a stack cannot play the scenario.
    pub fn with_stack(mut self, scenario: &Scenario, stack: Stack) -> Result<Self, Unplayable> {
        // The limits and the seats are those of a pipeline, and the controller is unused.
        let gcc = LabAlgorithm::Gcc.into();
        if let Err(why) = self.put_senders(scenario, &gcc, SenderKind::Stack) {
            return Err(Unplayable { scenario: scenario.id.clone(), why });
        }
        for participant in &mut self.participants {
            if participant.player == Player::Pipeline || stack.is_at_both_ends() {
                participant.player = Player::Stack;
            }
        }
        if stack.asks_for(FeedbackKind::Ccfb) {
            self.chromium = ChromiumMode::Ccfb;
        }
        self.stack = Some(stack);
        Ok(self)
    }

    fn put_senders(
        &mut self,
        scenario: &Scenario,
        controller: &LabController,
        kind: SenderKind,
    ) -> PlanResult<()> {
        self.check_controllers(scenario, controller)?;
        if self.participants.iter().any(|one| one.player == Player::Mixer) {
            if kind == SenderKind::Stack {
                return Err(format!("{} are no mixers: leave out --stack", kind.name()));
            }
            mix(&mut self.calls, scenario, controller);
            return Ok(());
        }
        self.check_senders(kind)?;
        for (call, planned) in self.calls.iter_mut().zip(scenario.calls()) {
            let number = call.number;
            let (peer, flow) = match (planned.up, planned.down) {
                (Some(flow), None) => (Peer::A, flow),
                (None, Some(flow)) => (Peer::B, flow),
                _ => {
                    return Err(format!(
                        "{} send to a browser, but both ends of call {number} send video: \
                         write one direction, or leave out {}",
                        kind.name(),
                        kind.option()
                    ));
                }
            };
            if call.audio[peer.other().index()] {
                return Err(format!(
                    "{} receive no audio, but call {number} has audio towards them",
                    kind.name()
                ));
            }
            let max = call.video[peer.index()];
            call.pipeline = sender(&scenario.flows[flow], controller, peer, max);
            if let Some(sender) = &call.pipeline {
                if sender.ecn != EcnMode::Off && !sender.ccfb {
                    // Transport-wide feedback has no field for marks.
                    return Err(format!(
                        "call {number} has ECN, and marks come back only with feedback = \"ccfb\""
                    ));
                }
                if sender.ccfb {
                    self.chromium = ChromiumMode::Ccfb;
                }
            }
        }
        self.seat_pipelines()
    }

    fn check_controllers(&self, scenario: &Scenario, controller: &LabController) -> PlanResult<()> {
        for media in scenario.flows.iter().filter_map(|flow| flow.traffic.media()) {
            let own = media.controller.map_or_else(|| controller.clone(), Into::into);
            if own.is_lab_only() {
                let name = own.name();
                return Err(format!("pipelines have no {name}: only simulations run it"));
            }
        }
        Ok(())
    }

    /// Whether senders of this kind can play the calls.
    fn check_senders(&self, kind: SenderKind) -> PlanResult<()> {
        let (name, option) = (kind.name(), kind.option());
        let codec = self.picture.codec;
        if codec != Codec::Vp8 {
            return Err(format!("{name} send VP8, not {}", codec.name()));
        }
        if self.picture.degradation != Degradation::default() {
            return Err(format!(
                "{name} keep the picture's size: leave out degradation = \"{}\"",
                degradation_name(self.picture.degradation)
            ));
        }
        if self.picture.layers > 1 {
            return Err(format!("{name} send one layer: leave out simulcast"));
        }
        if self.relay.is_some() || self.ice.is_some() {
            return Err(format!("{name} do not use a relay: leave out {option}"));
        }
        if self.calls.iter().any(|call| call.role != ForwardingRole::Direct) {
            return Err(format!(
                "{name} send to browsers, not to a forwarding server: leave out {option}"
            ));
        }
        if kind == SenderKind::Stack && self.calls.iter().any(|call| call.audio.contains(&true)) {
            return Err(format!("{name} send no audio"));
        }
        Ok(())
    }

    /// Makes the sending participants pipelines.
    fn seat_pipelines(&mut self) -> PlanResult<()> {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for call in &self.calls {
            if let Some(pipeline) = &call.pipeline {
                senders.push(call.ends[pipeline.peer.index()]);
                receivers.push(call.ends[pipeline.peer.other().index()]);
            }
        }
        if let Some(both) = senders.iter().find(|sender| receivers.contains(sender)) {
            return Err(format!(
                "{} sends video in one call and receives it in another, which a pipeline does not",
                self.participants[*both].name
            ));
        }
        for sender in senders {
            self.participants[sender].player = Player::Pipeline;
        }
        Ok(())
    }
}

/// Puts what a mixer sends to each participant under `controller`, or under the one that the flow
/// names.
pub(super) fn mix(calls: &mut [Call], scenario: &Scenario, controller: &LabController) {
    for (call, planned) in calls.iter_mut().zip(scenario.calls()) {
        let max = call.video[Peer::B.index()];
        call.pipeline =
            planned.down.and_then(|flow| sender(&scenario.flows[flow], controller, Peer::B, max));
    }
}

fn sender(
    flow: &Flow,
    controller: &LabController,
    peer: Peer,
    max: Option<Bitrate>,
) -> Option<ControlledSender> {
    let media = flow.traffic.media()?;
    let own = media.controller.map_or_else(|| controller.clone(), Into::into);
    let limits = media.settings.limits;
    let max = max.unwrap_or(limits.max());
    Some(ControlledSender {
        peer,
        controller: own.name().into(),
        min: limits.min().min(max),
        start: limits.start().min(max),
        max,
        ccfb: media.feedback.iter().any(|(_, format)| *format == Feedback::Ccfb),
        ecn: own.ecn_mode(media.settings.ecn),
    })
}

/// Maximum encoder bitrate of a media flow.
pub(super) fn limit(flow: &Flow) -> Option<Bitrate> {
    Some(flow.traffic.media()?.encoder_limit())
}

#[cfg(test)]
mod tests {
    use weir_scenario::parse;

    use super::*;

    fn plan(flows: &str) -> Result<CallConfig, Unplayable> {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n";
        let scenario = parse("x", &format!("{head}{flows}"), None).unwrap();
        CallConfig::of(&scenario, 1)?.with_pipelines(&scenario, &LabAlgorithm::Nada.into())
    }

    /// The refusal of a stack.
    fn refused(text: &str) -> String {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n";
        let scenario = parse("x", &format!("{head}{text}"), None).unwrap();
        let stack = Stack::of_command("mine", "true").unwrap();
        let config = CallConfig::of(&scenario, 1).unwrap();
        config.with_stack(&scenario, stack).unwrap_err().to_string()
    }

    #[test]
    fn a_scenario_that_stacks_cannot_play_is_refused_in_their_words() {
        for (text, wanted) in [
            ("[[flow]]\n[[flow]]\nkind = \"audio\"\n", "stacks of the arena send no audio"),
            ("[call]\nvideo = { codec = \"vp9\" }\n[[flow]]\n", "arena send VP8, not VP9"),
            ("[[flow]]\n[[flow]]\ndirection = \"down\"\n", "or leave out --stack"),
            (
                "[call]\ntopology = \"mixer\"\n[media]\nmax_bitrate = \"2Mbps\"\n\
                 [[flow]]\ncount = 2\n[[flow]]\ndirection = \"down\"\n\
                 [[flow]]\ndirection = \"down\"\n",
                "are no mixers",
            ),
        ] {
            let error = refused(text);
            assert!(error.contains(wanted) && !error.contains("--controller"), "{error}");
        }
    }

    #[test]
    fn a_stack_at_both_ends_needs_no_browser() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("a");
        std::fs::create_dir(&own).unwrap();
        let text = "title = \"t\"\nhome = \"h\"\nlicence = \"MIT\"\ncontrol = \"c\"\n\
                    feedback = [\"quic\"]\nencoder = \"e\"\ninstall = \"make\"\n\
                    driver = [\"d\"]\n";
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n[[flow]]\n[[flow]]\n";
        let scenario = parse("x", head, None).unwrap();
        for (more, browsers) in [("", 2), ("both_ends = true\n", 0)] {
            std::fs::write(own.join("stack.toml"), format!("{text}{more}")).unwrap();
            let stack = Stack::read(folder.path(), "a").unwrap();
            let config = CallConfig::of(&scenario, 1).unwrap();
            let config = config.with_stack(&scenario, stack).unwrap().with_quality().unwrap();
            let stacks = config.participants.iter().filter(|one| one.player == Player::Stack);
            assert_eq!(stacks.count(), config.participants.len() - browsers);
            assert!(config.calls.iter().all(|call| call.pipeline.is_some()));
        }
    }

    fn players(config: &CallConfig) -> Vec<bool> {
        config.participants.iter().map(|one| one.player == Player::Pipeline).collect()
    }

    #[test]
    fn pipelines_stand_at_the_sending_ends() {
        let limits = "min_bitrate = \"150kbps\"\nmax_bitrate = \"2Mbps\"\n";
        let up = plan(&format!("[[flow]]\n{limits}start_bitrate = \"300kbps\"\n")).unwrap();
        assert_eq!(players(&up), [true, false]);
        let sender = up.calls[0].pipeline.clone().unwrap();
        let kbps = Bitrate::from_kbps;
        assert_eq!((sender.peer, sender.controller.as_str()), (Peer::A, "nada"));
        assert_eq!((sender.min, sender.start, sender.max), (kbps(150), kbps(300), kbps(2000)));
        let down = plan("[[flow]]\ndirection = \"down\"\n").unwrap();
        assert_eq!(players(&down), [false, true]);
        assert_eq!(down.calls[0].pipeline.as_ref().unwrap().peer, Peer::B);
        let two = plan("[[flow]]\n[[flow]]\n").unwrap();
        assert_eq!(players(&two), [true, false, true, false]);
    }

    #[test]
    fn a_flow_that_names_its_controller_keeps_it() {
        let flows =
            "[[flow]]\n[[flow]]\ncontroller = \"gcc\"\n[[flow]]\ncontroller = \"$controller\"\n";
        let config = plan(flows).unwrap();
        let names = config.calls.iter().map(|call| call.pipeline.clone().unwrap().controller);
        assert_eq!(names.collect::<Vec<_>>(), ["nada", "gcc", "nada"]);
    }

    #[test]
    fn a_pipeline_sends_audio_beside_its_video() {
        let config = plan("[[flow]]\n[[flow]]\nkind = \"audio\"\n").unwrap();
        assert_eq!(players(&config), [true, false]);
        assert_eq!(config.calls[0].audio, [true, false]);
    }

    #[test]
    fn feedback_and_ecn_come_from_the_flow() {
        let plain = plan("[[flow]]\n").unwrap();
        let sender = plain.calls[0].pipeline.clone().unwrap();
        assert_eq!((sender.ccfb, sender.ecn), (false, EcnMode::Off));
        assert_eq!(plain.chromium, ChromiumMode::Default);
        let l4s = "[[flow]]\necn = \"l4s\"\nfeedback = \"ccfb\"\n";
        let config = plan(l4s).unwrap();
        let sender = config.calls[0].pipeline.clone().unwrap();
        assert_eq!((sender.ccfb, sender.ecn), (true, EcnMode::L4s));
        assert_eq!(config.chromium, ChromiumMode::Ccfb);
        // GCC cannot keep the promise of ECT(1).
        let gcc = plan(&format!("{l4s}controller = \"gcc\"\n")).unwrap();
        assert_eq!(gcc.calls[0].pipeline.clone().unwrap().ecn, EcnMode::Classic);
    }

    #[test]
    fn one_sender_of_many_calls_is_one_pipeline() {
        let config = plan("[call]\ntopology = \"one-to-many\"\n[[flow]]\ncount = 2\n").unwrap();
        assert_eq!(players(&config), [true, false, false]);
    }

    #[test]
    fn a_mixer_sends_to_each_participant_under_the_controller_asked_for() {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n[call]\ntopology = \"mixer\"\n\
                    [media]\nmax_bitrate = \"2Mbps\"\n";
        let flows = "[[flow]]\ncount = 2\n[[flow]]\ndirection = \"down\"\n\
                     [[flow]]\ndirection = \"down\"\ncontroller = \"scream\"\n";
        let scenario = parse("x", &format!("{head}{flows}"), None).unwrap();
        let plain = CallConfig::of(&scenario, 1).unwrap();
        let asked = plain.clone().with_pipelines(&scenario, &LabAlgorithm::Nada.into()).unwrap();
        for (config, wanted) in [(plain, ["gcc", "scream"]), (asked, ["nada", "scream"])] {
            let senders: Vec<_> = config.calls.iter().flat_map(|call| &call.pipeline).collect();
            assert!(senders.iter().all(|one| one.peer == Peer::B));
            assert_eq!(senders[0].max, Bitrate::from_kbps(2000));
            let names: Vec<&str> = senders.iter().map(|one| one.controller.as_str()).collect();
            assert_eq!(names, wanted);
            // The participants stay browsers.
            assert_eq!(players(&config), [false; 3]);
        }
    }

    #[test]
    fn a_scenario_that_pipelines_cannot_play_is_refused() {
        let relay = "[call]\nrelay = \"udp\"\n[[network.hop]]\n[[network.hop]]\n[[flow]]\n";
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n";
        let relay = parse("x", &format!("{head}{relay}"), None).unwrap();
        let relayed = CallConfig::of(&relay, 1).unwrap();
        let nada = LabController::from(LabAlgorithm::Nada);
        let error = relayed.with_pipelines(&relay, &nada).unwrap_err().to_string();
        assert!(error.contains("do not use a relay"), "{error}");
        for (flows, wanted) in [
            ("[[flow]]\n[[flow]]\ndirection = \"down\"\n", "both ends of call 1 send video"),
            ("[[flow]]\n[[flow]]\nkind = \"audio\"\ndirection = \"down\"\n", "receive no audio"),
            ("[[flow]]\necn = \"l4s\"\n", "marks come back only with feedback"),
            (
                "[call]\nvideo = { degradation = \"balanced\" }\n[[flow]]\n",
                "keep the picture's size",
            ),
            ("[call]\nvideo = { codec = \"vp9\" }\n[[flow]]\n", "send VP8, not VP9"),
            ("[[flow]]\ncontroller = \"gcc-2013\"\n", "have no gcc-2013"),
            (
                "[call]\ntopology = \"forwarding-server\"\n[[flow]]\ncount = 2\n",
                "forwarding server",
            ),
        ] {
            let error = plan(flows).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
