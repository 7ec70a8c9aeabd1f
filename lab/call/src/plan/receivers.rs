//! Changes the plan to calls whose receivers are stacks of the arena.

use weir_scenario::Scenario;
use weir_scenario::call::Codec;

use super::{CallConfig, PlanResult, Player, Unplayable};
use crate::message::Peer;
use crate::peers::janus::ForwardingRole;
use crate::peers::stack::Stack;

/// The end that answers. A stack receives there, because the browser that sends offers.
const RECEIVER: Peer = Peer::B;

impl CallConfig {
    /// Changes the plan: `stack` receives each video, which a browser sends.
    ///
    /// # Errors
    /// One line, if a stack cannot receive the calls of the scenario.
    pub fn with_receiver(mut self, scenario: &Scenario, stack: Stack) -> Result<Self, Unplayable> {
        match self.put_receivers() {
            Ok(()) => {
                self.stack = Some(stack);
                Ok(self)
            }
            Err(why) => Err(Unplayable { scenario: scenario.id.clone(), why }),
        }
    }

    fn put_receivers(&mut self) -> PlanResult<()> {
        let codec = self.picture.codec;
        if codec != Codec::Vp8 {
            return Err(format!("stacks of the arena receive VP8, not {}", codec.name()));
        }
        if self.picture.layers > 1 {
            return Err("stacks of the arena receive one layer: leave out simulcast".into());
        }
        if self.relay.is_some() || self.ice.is_some() {
            return Err("stacks of the arena do not use a relay: leave out --stack".into());
        }
        for call in &self.calls {
            let number = call.number;
            if call.role != ForwardingRole::Direct || call.pipeline.is_some() {
                return Err(format!(
                    "stacks of the arena receive from browsers, but call {number} has a server"
                ));
            }
            if call.audio.contains(&true) {
                return Err(format!("stacks of the arena receive no audio, but call {number} has"));
            }
            if call.video[RECEIVER.index()].is_some() {
                return Err(format!(
                    "stacks of the arena only receive, but in call {number} their end sends: \
                     write direction = \"up\" alone"
                ));
            }
        }
        let receivers: Vec<usize> =
            self.calls.iter().map(|call| call.ends[RECEIVER.index()]).collect();
        for call in &self.calls {
            let sender = call.ends[RECEIVER.other().index()];
            if receivers.contains(&sender) {
                let name = &self.participants[sender].name;
                return Err(format!("{name} sends in one call and receives in another"));
            }
        }
        for receiver in receivers {
            self.participants[receiver].player = Player::Stack;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::call::BrowserKind;
    use weir_scenario::parse;

    use super::*;

    fn plan(text: &str) -> Result<CallConfig, Unplayable> {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n";
        let scenario = parse("x", &format!("{head}{text}"), None).unwrap();
        let stack = Stack::of_command("mine", "true").unwrap();
        CallConfig::of(&scenario, 1)?.with_receiver(&scenario, stack)
    }

    #[test]
    fn a_stack_sits_at_the_receiving_end_and_the_browser_offers() {
        let config = plan("[[flow]]\n").unwrap();
        let players: Vec<Player> = config.participants.iter().map(|one| one.player).collect();
        assert_eq!(players, [Player::Browser(BrowserKind::Chromium), Player::Stack]);
        assert!(config.calls[0].pipeline.is_none() && config.stack.is_some());
    }

    #[test]
    fn a_scenario_that_a_stack_cannot_receive_is_refused() {
        for (text, wanted) in [
            ("[[flow]]\ndirection = \"down\"\n", "in call 1 their end sends"),
            ("[[flow]]\n[[flow]]\ndirection = \"down\"\n", "in call 1 their end sends"),
            ("[[flow]]\n[[flow]]\nkind = \"audio\"\n", "receive no audio"),
            ("[call]\nvideo = { codec = \"vp9\" }\n[[flow]]\n", "receive VP8, not VP9"),
            ("[call]\nvideo = { simulcast = 3 }\n[[flow]]\n", "receive one layer"),
            ("[call]\ntopology = \"forwarding-server\"\n[[flow]]\ncount = 2\n", "has a server"),
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
